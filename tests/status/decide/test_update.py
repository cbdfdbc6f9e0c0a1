import pytest
from msgspec import structs

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStatus, PodCondition, PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.update import (
    ContainerType,
    Termination,
    UpdateAccepted,
    UpdateOutcome,
    UpdateRejected,
    UpdateUnchanged,
    decide_update,
)
from podstatus.testing.builders import ended, make_pod, make_status, running, waiting
from tests.support.status_node import condition_of

BEFORE = Time.parse("2024-01-01T00:00:00Z")
NOW = Time.parse("2024-01-01T00:01:00Z")
ONCE = make_pod(restart_policy="Never")


def decide(
    status: PodStatus,
    *,
    pod: Pod = ONCE,
    cached: PodStatus | None = None,
    shown: PodStatus | None = None,
    force: bool = False,
    now: Time = NOW,
) -> UpdateOutcome:
    """Decide on a status; `shown` is the API server's, used if none is cached."""
    return decide_update(
        pod,
        status,
        cached=cached,
        last_known=cached or shown or PodStatus(),
        force=force,
        now=now,
        gates=FeatureGates(),
    )


def accepted(outcome: UpdateOutcome) -> PodStatus:
    assert isinstance(outcome, UpdateAccepted)
    return outcome.status


def settled(status: PodStatus) -> PodStatus:
    """Return the status as it would be cached."""
    return accepted(decide(status))


# Outcomes


def test_the_first_status_is_accepted() -> None:
    assert accepted(decide(make_status("Running"))).phase == "Running"


def test_the_first_status_is_accepted_even_if_the_api_shows_the_same() -> None:
    shown = settled(make_status("Running"))
    assert isinstance(decide(shown, shown=shown), UpdateAccepted)


def test_a_status_that_says_what_is_cached_is_unchanged() -> None:
    cached = settled(make_status("Running", running("app"), Ready="True"))
    assert decide(
        make_status("Running", running("app"), Ready="True"), cached=cached
    ) == UpdateUnchanged(())


def test_an_identical_status_is_accepted_when_forced() -> None:
    cached = settled(make_status("Running"))
    assert accepted(decide(cached, cached=cached, force=True)) == cached


def test_a_different_status_is_accepted() -> None:
    cached = settled(make_status("Running"))
    assert accepted(decide(make_status("Failed"), cached=cached)).phase == "Failed"


@pytest.mark.parametrize("force", [False, True])
def test_a_revived_container_is_refused_even_when_forced(*, force: bool) -> None:
    cached = settled(make_status("Running", ended("app")))
    outcome = decide(make_status("Running", running("app")), cached=cached, force=force)
    assert isinstance(outcome, UpdateRejected)
    assert outcome.reason.startswith("terminated container app attempted illegal transition")


def test_what_the_api_shows_counts_for_transitions_when_nothing_is_cached() -> None:
    shown = make_status("Running", ended("app"))
    assert isinstance(decide(make_status("Running", running("app")), shown=shown), UpdateRejected)


def test_the_phase_is_not_policed() -> None:
    cached = settled(make_status("Failed"))
    assert accepted(decide(make_status("Running"), cached=cached)).phase == "Running"


# Transition times


@pytest.mark.parametrize(
    "condition_type",
    [
        "ContainersReady",
        "Ready",
        "Initialized",
        "PodReadyToStartContainers",
        "PodScheduled",
        "DisruptionTarget",
        "AllContainersRestarting",
    ],
)
def test_surprise_23_our_conditions_are_stamped_when_they_move(condition_type: str) -> None:
    def at(status: str, time: Time) -> PodStatus:
        condition = PodCondition(type=condition_type, status=status, last_transition_time=time)
        return PodStatus(conditions=(condition,))

    given = Time.parse("2020-01-01T00:00:00Z")
    moved = accepted(decide(at("True", given), cached=at("False", BEFORE)))
    assert condition_of(moved, condition_type).last_transition_time == NOW
    stayed = accepted(decide(at("True", given), cached=at("True", BEFORE), force=True))
    assert condition_of(stayed, condition_type).last_transition_time == BEFORE


@pytest.mark.parametrize(
    "condition_type", ["example.com/custom", "PodResizePending", "PodResizeInProgress"]
)
def test_surprise_23_custom_and_resize_conditions_keep_the_time_given(condition_type: str) -> None:
    condition = PodCondition(type=condition_type, status="True", last_transition_time=BEFORE)
    status = accepted(decide(PodStatus(conditions=(condition,))))
    assert condition_of(status, condition_type).last_transition_time == BEFORE


@pytest.mark.parametrize(
    ("old", "given", "expected"),
    [
        pytest.param(None, None, NOW, id="now"),
        pytest.param(None, BEFORE, BEFORE, id="as given"),
        pytest.param(Time(), None, NOW, id="an unset time is none"),
        pytest.param(None, Time(), NOW, id="an unset time given is none"),
        pytest.param(BEFORE, NOW, BEFORE, id="as before"),
    ],
)
def test_the_start_time_never_changes(old: Time | None, given: Time | None, expected: Time) -> None:
    status = decide(PodStatus(start_time=given), shown=PodStatus(start_time=old))
    assert accepted(status).start_time == expected


@pytest.mark.parametrize(("old", "given", "expected"), [(3, 5, 5), (5, 3, 5), (0, 0, 0)])
def test_surprise_15_the_observed_generation_never_goes_back(
    old: int, given: int, expected: int
) -> None:
    status = decide(PodStatus(observed_generation=given), shown=PodStatus(observed_generation=old))
    assert accepted(status).observed_generation == expected


def test_the_status_is_normalised() -> None:
    now = Time.parse("2024-01-01T00:01:00.5Z")
    status = make_status("Running", running("b"), running("a"), Ready="True")
    after = accepted(decide(status, now=now))
    assert [c.name for c in after.container_statuses or ()] == ["a", "b"]
    assert (after.start_time, condition_of(after, "Ready").last_transition_time) == (NOW, NOW)


# Terminations


@pytest.mark.parametrize(
    ("before", "after", "counted"),
    [
        pytest.param((running("app"),), (ended("app", 2),), True, id="it ends"),
        pytest.param((), (ended("app", 2),), True, id="first seen when it had ended"),
        pytest.param((ended("app", 1),), (ended("app", 2),), False, id="had ended"),
        pytest.param((running("app"),), (running("app"),), False, id="goes on"),
        pytest.param((running("app"),), (waiting("app"),), False, id="waits"),
    ],
)
def test_an_exit_is_counted_once(
    *,
    before: tuple[ContainerStatus, ...],
    after: tuple[ContainerStatus, ...],
    counted: bool,
) -> None:
    outcome = decide(make_status("Running", *after), cached=make_status("Running", *before))
    assert isinstance(outcome, UpdateAccepted)
    expected = (Termination(ContainerType.REGULAR, 2, "Error"),) if counted else ()
    assert outcome.terminations == expected


def test_exits_of_all_three_kinds_of_containers_are_counted_init_first() -> None:
    pod = make_pod(init_containers=("init",))
    status = PodStatus(
        init_container_statuses=(ended("init"),),
        container_statuses=(ended("app", 1),),
        ephemeral_container_statuses=(ended("debug", 2),),
    )
    outcome = decide(status, pod=pod)
    assert isinstance(outcome, UpdateAccepted)
    assert outcome.terminations == (
        Termination(ContainerType.INIT, 0, "Completed"),
        Termination(ContainerType.REGULAR, 1, "Error"),
        Termination(ContainerType.EPHEMERAL, 2, "Error"),
    )


def test_kinds_of_containers_are_named_as_metrics_name_them() -> None:
    names = ["init_container", "container", "ephemeral_container"]
    assert [kind.value for kind in ContainerType] == names


def test_of_several_old_statuses_of_one_container_the_first_tells_whether_it_had_ended() -> None:
    pod = make_pod()
    cached = structs.replace(make_status("Running", running("app"), ended("app", 1)))
    outcome = decide(make_status("Running", ended("app", 1)), pod=pod, cached=cached)
    assert isinstance(outcome, UpdateAccepted)
    assert len(outcome.terminations) == 1
