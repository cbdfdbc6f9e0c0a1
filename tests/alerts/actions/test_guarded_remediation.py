"""The guard of remediations: allowed, rate limited, reported."""

import asyncio

import pytest
from msgspec import structs

from podstatus.alerts.actions.guarded_remediation import GuardedRemediation
from podstatus.alerts.model import Action, Alert, AlertId, RuleSet, Subject
from podstatus.alerts.ports import ActionError, RetryableError
from podstatus.kube.objects.pod import PodUID
from podstatus.testing.clock import FakeClock

KIND = "deletePod"
ACTION = Action(kind=KIND)
ALLOWED = RuleSet(allow_actions=frozenset({KIND}), dry_run=False)


def alert(name: str = "web", id_: str = "1", **changed: object) -> Alert:
    subject = Subject(scope="pod", namespace="default", name=name, uid=PodUID(f"u-{name}"))
    made = Alert(id=AlertId(id_), rule="Bad", subject=subject, state="firing", since=1, fired=2)
    return structs.replace(made, **changed)


class Deletes:
    """A `Remediation` that records what it deleted."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.fails: list[ActionError] = []

    def describe(self, action: Action, alert: Alert) -> str:
        if alert.subject.name == "static":
            raise ActionError("it is static")
        return "delete the pod"

    async def apply(self, action: Action, alert: Alert) -> None:
        if self.fails:
            raise self.fails.pop(0)
        self.did.append(alert.subject.name)

    async def revert(self, action: Action, alert: Alert) -> None:
        self.did.append(f"undo {alert.subject.name}")


class RecordedEvents:
    """Records events."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def record(self, subject: Subject, reason: str, message: str, *, warning: bool) -> None:
        type_ = "Warning" if warning else "Normal"
        self.messages.append(f"{subject.name} {type_} {reason} {message}")


class Scene:
    def __init__(self, rules: RuleSet = ALLOWED, *, is_level: bool = False) -> None:
        self.change, self.events, self.clock = Deletes(), RecordedEvents(), FakeClock()
        self.guarded = GuardedRemediation(
            KIND,
            self.change,
            lambda _: rules,
            self.events,
            clock=self.clock,
            is_declarative=is_level,
        )

    def do(self, alert: Alert) -> str:
        """Return the error, or an empty string."""
        try:
            asyncio.run(self.guarded.send(ACTION, alert))
        except ActionError as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def passes(self, minutes: float) -> None:
        asyncio.run(self.clock.advance(minutes * 60))


def test_an_allowed_action_is_done_and_reported() -> None:
    scene = Scene()
    assert scene.do(alert()) == ""
    assert scene.change.did == ["web"]
    assert scene.events.messages == ["web Normal AlertAction Bad: delete the pod: done"]


def test_a_denied_action_is_reported_and_not_done() -> None:
    scene = Scene(RuleSet(allow_actions=frozenset({"taintNode"}), dry_run=False))
    assert scene.do(alert()) == "ActionError: deletePod is not listed in allowActions"
    assert scene.change.did == []
    (message,) = scene.events.messages
    assert message.startswith("web Warning AlertActionNotDone Bad: delete the pod: not done, ")
    assert message.endswith("deletePod is not listed in allowActions")


def test_a_dry_run_is_the_default_and_reported() -> None:
    scene = Scene(RuleSet(allow_actions=frozenset({KIND})))
    assert scene.do(alert()) == ""
    assert scene.change.did == []
    assert scene.events.messages == [
        "web Warning AlertActionNotDone Bad: delete the pod: not done, dryRun is on"
    ]


@pytest.mark.parametrize("step", [-3600, 3600])
def test_a_clock_step_changes_no_turn(step: int) -> None:
    scene = Scene()
    assert scene.do(alert(id_="1")) == ""
    scene.clock.step(step)
    scene.passes(9.9)
    assert scene.do(alert(id_="2")) == "ActionError: the rate limit is exceeded"
    scene.passes(0.1)
    assert scene.do(alert(id_="3")) == ""


def test_a_subject_has_its_turn_once_in_ten_minutes() -> None:
    scene = Scene()
    assert scene.do(alert(id_="1")) == ""
    scene.passes(9.9)
    assert scene.do(alert(id_="2")) == "ActionError: the rate limit is exceeded"
    scene.passes(0.2)
    assert scene.do(alert(id_="3")) == ""
    assert scene.change.did == ["web", "web"]


def test_a_recreated_pod_shares_the_rate_limit_of_its_name() -> None:
    scene = Scene()

    def again(number: int) -> str:
        """As after a deletion, if a controller re-creates the pod at once."""
        uid = PodUID(f"u-{number}")
        return scene.do(
            alert(id_=str(number), subject=structs.replace(alert().subject, uid=uid, node="n"))
        )

    came = [again(number) for number in range(3)]
    assert came == ["", *["ActionError: the rate limit is exceeded"] * 2]
    scene.passes(10)
    assert again(3) == ""
    # An action that was not done does not count for the limit of others either.
    assert [scene.do(alert(f"p{number}", f"p{number}")) for number in range(9)] == [""] * 9


def test_names_of_other_namespaces_are_others() -> None:
    scene = Scene()
    other = structs.replace(alert().subject, namespace="other")
    assert [scene.do(alert()), scene.do(alert(id_="2", subject=other))] == ["", ""]


def test_ten_in_an_hour_whatever_they_are_done_to() -> None:
    scene = Scene()
    came = [scene.do(alert(f"p{number}", str(number))) for number in range(12)]
    assert came == [""] * 10 + ["ActionError: the rate limit is exceeded"] * 2
    scene.passes(6)
    assert scene.do(alert("p13", "13")) == ""
    assert scene.do(alert("p14", "14")) != ""


def test_what_is_tried_again_spends_no_second_turn() -> None:
    scene = Scene()
    scene.change.fails = [RetryableError("away"), RetryableError("away")]
    assert [scene.do(alert()) for _ in range(3)] == ["RetryableError: away"] * 2 + [""]
    assert scene.events.messages == ["web Normal AlertAction Bad: delete the pod: done"]


@pytest.mark.parametrize("name", ["web", "static"])
def test_a_permanent_failure_is_reported(name: str) -> None:
    scene = Scene()
    scene.change.fails = [ActionError("it is static")]
    assert scene.do(alert(name)) == "ActionError: it is static"
    what = "delete the pod" if name == "web" else KIND
    assert scene.events.messages == [
        f"{name} Warning AlertActionNotDone Bad: {what}: not done, it is static"
    ]


def test_what_can_be_taken_back_is_when_the_alert_resolves() -> None:
    scene = Scene()
    scene.do(alert())
    assert scene.do(alert(state="resolved")) == ""
    assert scene.change.did == ["web", "undo web"]


def test_a_change_that_is_a_level_is_asked_for_by_every_alert() -> None:
    scene = Scene(is_level=True)
    assert [scene.do(alert(id_=str(number))) for number in range(12)] == [""] * 12
