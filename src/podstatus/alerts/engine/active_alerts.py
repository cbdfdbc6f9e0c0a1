"""The active alerts, pending or firing, of this process or restored from the previous one."""

from collections.abc import Iterator, Mapping

import msgspec

from podstatus.alerts.model import Alert, Rule, Subject


class ActiveAlert(msgspec.Struct):
    """An alert with the state that the engine needs to continue it."""

    alert: Alert
    annotations: Mapping[str, str] = {}
    """Latest annotations of a pending alert, used when it fires."""
    is_subject_seen: bool = True
    """Whether its subject was evaluated in this process."""
    is_restored: bool = False
    """Whether it was restored from the previous process."""

    def may_still_hold(self, rule: Rule, warming_up: frozenset[str]) -> bool:
        """True if a restored alert must not resolve yet: facts of its rule are warming up."""
        if not self.is_restored:
            return False
        expression = "".join(rule.expression.split())
        return any(name in expression for name in warming_up)


_NO_ALERTS: Mapping[str, ActiveAlert] = {}


class ActiveAlerts:
    """All active alerts, by subject and rule."""

    def __init__(self) -> None:
        self._all: dict[str, dict[str, ActiveAlert]] = {}
        self._resumed: list[ActiveAlert] = []

    def __iter__(self) -> Iterator[ActiveAlert]:
        return (active for alerts in self._all.values() for active in alerts.values())

    def for_subject(self, key: str) -> Mapping[str, ActiveAlert]:
        """Return the active alerts of a subject, by rule."""
        return self._all.get(key, _NO_ALERTS)

    def put(self, active: ActiveAlert) -> None:
        """Add an alert, replacing one of the same rule and subject."""
        self._all.setdefault(subject_key(active.alert.subject), {})[active.alert.rule] = active

    def pop(self, key: str, rule: str) -> ActiveAlert:
        """Remove and return an alert. Raises KeyError."""
        alerts = self._all[key]
        active = alerts.pop(rule)
        if not alerts:
            del self._all[key]
        return active

    def mark_subject_seen(self, key: str) -> None:
        """Record that the subject was evaluated in this process."""
        for active in self.for_subject(key).values():
            if not active.is_subject_seen:
                active.is_subject_seen = True
                self._resumed.append(active)

    def pop_resumed(self) -> list[Alert]:
        """Return the alerts whose subjects were first evaluated since the last call."""
        resumed, self._resumed = self._resumed, []
        return [
            active.alert
            for active in resumed
            if self.for_subject(subject_key(active.alert.subject)).get(active.alert.rule) is active
        ]


def subject_key(subject: Subject) -> str:
    """Return the key of a subject: by a pod's UID, or a node's name."""
    return f"{subject.scope} {subject.uid or f'{subject.namespace}/{subject.name}'}"
