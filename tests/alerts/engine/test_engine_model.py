"""The engine against a model that evaluates everything at every tick."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from podstatus.alerts.model import Alert, Rule
from tests.support.alert_rules import SECOND, EvaluatingEngine, checked, pod, pod_like

AT = 1_000_000
NAMES = ("a", "b", "c")
RULES = (
    Rule(name="AtOnce", expression="pod.restarts > 0"),
    Rule(name="Waits", expression='pod.phase == "Pending"', for_seconds=3),
    Rule(
        name="Both", expression='pod.phase == "Pending"', for_seconds=2, keep_firing_for_seconds=4
    ),
    Rule(
        name="Fails",
        expression='"n" in pod.labels && int(pod.labels.n) > 0',
        for_seconds=2,
        keep_firing_for_seconds=3,
    ),
)
LOADED = [checked(rule) for rule in RULES]


class Like(msgspec.Struct, frozen=True):
    """The state of a pod."""

    restarts: int
    pending: bool
    label: str | None

    def facts(self) -> dict[str, Any]:
        labels = {} if self.label is None else {"n": self.label}
        phase = "Pending" if self.pending else "Running"
        return pod_like(restarts=self.restarts, phase=phase, labels=labels)

    def holds(self, rule: str) -> bool | None:
        """None if the rule fails."""
        match rule:
            case "AtOnce":
                return self.restarts > 0
            case "Fails":
                return None if self.label == "?" else self.label == "1"
            case _:
                return self.pending


class Shown(msgspec.Struct):
    """An alert of the model: times in seconds."""

    since: int
    fired: int = 0
    ceased: int = 0


class Model:
    """Evaluates every rule for every pod at every tick."""

    def __init__(self) -> None:
        self.pods: dict[str, Like] = {}
        self.shown: dict[tuple[str, str], Shown] = {}

    def tick(self, now: int) -> None:
        for name, like in self.pods.items():
            for rule in RULES:
                self.ask(name, rule, like.holds(rule.name), now)
        for key in [key for key in self.shown if key[0] not in self.pods]:
            del self.shown[key]

    def ask(self, name: str, rule: Rule, held: bool | None, now: int) -> None:
        key = (name, rule.name)
        shown = self.shown.get(key)
        if held is None:
            return
        if held:
            shown = self.shown.setdefault(key, Shown(since=now))
            shown.ceased = 0
            if not shown.fired and now >= shown.since + rule.for_seconds:
                shown.fired = now
        elif shown is not None:
            if shown.fired:
                shown.ceased = shown.ceased or now
            if not shown.fired or now >= shown.ceased + rule.keep_firing_for_seconds:
                del self.shown[key]


LIKES = st.builds(
    Like, st.sampled_from((0, 1)), st.booleans(), st.sampled_from((None, "0", "1", "1", "?"))
)
STEPS = st.one_of(
    st.tuples(st.just("update"), st.sampled_from(NAMES), LIKES),
    st.tuples(st.just("gone"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("restart"), st.none(), st.none()),
    st.tuples(st.just("pass"), st.integers(1, 5), st.none()),
)


class Pair:
    """An engine and the model, with the same input."""

    def __init__(self) -> None:
        self.engine = EvaluatingEngine(LOADED)
        self.model = Model()
        self.followed: dict[str, Alert] = {}
        """The alerts according to the changes that the engine returned."""
        self.ended: set[str] = set()
        self.now = AT
        self.lives = 0

    def follow(self, changed: list[Alert]) -> None:
        for alert in changed:
            assert alert.id not in self.ended
            assert self.followed.get(alert.id) != alert
            self.followed[alert.id] = alert
            if alert.resolved:
                self.ended.add(self.followed.pop(alert.id).id)

    def step(self, what: str, name: Any, like: Like | None) -> None:
        nanos = self.now * SECOND
        if what == "update" and like is not None:
            self.model.pods[name] = like
            self.follow(self.engine.update(pod(name), like.facts(), nanos))
        elif what == "gone":
            self.model.pods.pop(name, None)
            self.follow(self.engine.subject_removed(pod(name), nanos))
        elif what == "restart":
            self.restart(nanos)
        else:
            self.wait(name)
        self.model.tick(self.now)

    def wait(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1
            self.model.tick(self.now)
        while (due := self.engine.next_due()) is not None and due <= self.now * SECOND:
            self.follow(self.engine.advance(due))

    def restart(self, nanos: int) -> None:
        """Another process has only the returned alerts; all pods are evaluated again."""
        self.lives += 1
        self.engine = EvaluatingEngine(LOADED, era=str(self.lives))
        self.engine.restore(self.followed.values())
        for name, like in self.model.pods.items():
            self.follow(self.engine.update(pod(name), like.facts(), nanos))
        self.follow(self.engine.all_known("pod", nanos))

    def compare(self) -> None:
        assert dict(self.engine.alerts()) == self.followed
        assert {(a.subject.name, a.rule): _times(a) for a in self.followed.values()} == {
            key: (shown.since, shown.fired, shown.ceased) for key, shown in self.model.shown.items()
        }


def _times(alert: Alert) -> tuple[int, int, int]:
    assert alert.state == ("firing" if alert.fired else "pending")
    return alert.since // SECOND, alert.fired // SECOND, alert.ceased // SECOND


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_same_alerts_at_the_same_times_as_if_all_were_asked_all_the_time(
    steps: list[tuple[str, Any, Like | None]],
) -> None:
    pair = Pair()
    for what, name, like in steps:
        pair.step(what, name, like)
        pair.compare()
