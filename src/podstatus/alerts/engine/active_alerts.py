"""Alerts that are alive: pending or firing, of this life of the agent or of an earlier one."""

from collections.abc import Iterator, Mapping

import msgspec

from podstatus.alerts.model import Alert, Rule, Subject


class ActiveAlert(msgspec.Struct):
    """One of them, and what is needed to go on with it."""

    alert: Alert
    annotations: Mapping[str, str] = {}
    """The latest, of one that is pending: what it will say when it fires."""
    is_subject_seen: bool = True
    """Whether its subject was told in this life of the agent."""
    is_restored: bool = False
    """Whether it began in an earlier one."""

    def may_still_hold(self, rule: Rule, warming_up: frozenset[str]) -> bool:
        """Whether one that seems to be over may not be: what its rule asks for is too young."""
        if not self.is_restored:
            return False
        asked = "".join(rule.expression.split())
        return any(name in asked for name in warming_up)


_NO_ALERTS: Mapping[str, ActiveAlert] = {}


class ActiveAlerts:
    """All of them, by subject and rule."""

    def __init__(self) -> None:
        self._all: dict[str, dict[str, ActiveAlert]] = {}
        self._resumed: list[ActiveAlert] = []

    def __iter__(self) -> Iterator[ActiveAlert]:
        return (known for living in self._all.values() for known in living.values())

    def for_subject(self, key: str) -> Mapping[str, ActiveAlert]:
        """Those of a subject, by rule."""
        return self._all.get(key, _NO_ALERTS)

    def put(self, active: ActiveAlert) -> None:
        """It is alive, and no other of its rule and subject."""
        self._all.setdefault(subject_key(active.alert.subject), {})[active.alert.rule] = active

    def pop(self, key: str, rule: str) -> ActiveAlert:
        """It is over."""
        living = self._all[key]
        known = living.pop(rule)
        if not living:
            del self._all[key]
        return known

    def mark_subject_seen(self, key: str) -> None:
        """The subject was told."""
        for known in self.for_subject(key).values():
            if not known.is_subject_seen:
                known.is_subject_seen = True
                self._resumed.append(known)

    def pop_resumed(self) -> list[Alert]:
        """Those whose subjects were told for the first time since this was asked."""
        met, self._resumed = self._resumed, []
        return [
            known.alert
            for known in met
            if self.for_subject(subject_key(known.alert.subject)).get(known.alert.rule) is known
        ]


def subject_key(subject: Subject) -> str:
    """What tells a subject from others: a pod's UID, a node's name."""
    return f"{subject.scope} {subject.uid or f'{subject.namespace}/{subject.name}'}"
