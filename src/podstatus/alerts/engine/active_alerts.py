"""Alerts that are alive: pending or firing, of this life of the agent or of an earlier one."""

from collections.abc import Iterator, Mapping

import msgspec

from podstatus.alerts.model import Alert, Rule, Subject


class Living(msgspec.Struct):
    """One of them, and what is needed to go on with it."""

    alert: Alert
    annotations: Mapping[str, str] = {}
    """The latest, of one that is pending: what it will say when it fires."""
    told: bool = True
    """Whether its subject was told in this life of the agent."""
    is_earlier: bool = False
    """Whether it began in an earlier one."""

    def may_hold(self, rule: Rule, young: frozenset[str]) -> bool:
        """Whether one that seems to be over may not be: what its rule asks for is too young."""
        if not self.is_earlier:
            return False
        asked = "".join(rule.expression.split())
        return any(name in asked for name in young)


_NO_ALERTS: Mapping[str, Living] = {}


class LivingAlerts:
    """All of them, by subject and rule."""

    def __init__(self) -> None:
        self._all: dict[str, dict[str, Living]] = {}
        self._met: list[Living] = []

    def __iter__(self) -> Iterator[Living]:
        return (known for living in self._all.values() for known in living.values())

    def of(self, key: str) -> Mapping[str, Living]:
        """Those of a subject, by rule."""
        return self._all.get(key, _NO_ALERTS)

    def put(self, known: Living) -> None:
        """It is alive, and no other of its rule and subject."""
        self._all.setdefault(subject_key(known.alert.subject), {})[known.alert.rule] = known

    def pop(self, key: str, rule: str) -> Living:
        """It is over."""
        living = self._all[key]
        known = living.pop(rule)
        if not living:
            del self._all[key]
        return known

    def meet(self, key: str) -> None:
        """The subject was told."""
        for known in self.of(key).values():
            if not known.told:
                known.told = True
                self._met.append(known)

    def met(self) -> list[Alert]:
        """Those whose subjects were told for the first time since this was asked."""
        met, self._met = self._met, []
        return [
            known.alert
            for known in met
            if self.of(subject_key(known.alert.subject)).get(known.alert.rule) is known
        ]


def subject_key(subject: Subject) -> str:
    """What tells a subject from others: a pod's UID, a node's name."""
    return f"{subject.scope} {subject.uid or f'{subject.namespace}/{subject.name}'}"
