"""The status of a container, from its attempts and the previous status."""

from typing import Any

import pytest
from msgspec import structs

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import (
    Container,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
    EphemeralContainer,
    VolumeMount,
)
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStatus,
    LinuxContainerUser,
    PodCondition,
    VolumeMountStatus,
)
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.kube.scalars.time import UNSET_TIME
from podstatus.pods.generate_api_status import generate_api_pod_status
from podstatus.testing.builders import ended, make_pod, make_status, running, waiting
from tests.support.container_facts import (
    NOW,
    RESTART_ALL_OFF,
    RULES_OFF,
    at,
    created,
    exited,
    only,
    runs,
    status_of,
    unknown,
)


def describe(status: ContainerState) -> str:
    """Return a state as a short text."""
    if status.terminated is not None:
        return f"terminated {status.terminated.reason} {status.terminated.exit_code}"
    if status.waiting is not None:
        return f"waiting {status.waiting.reason}".strip()
    return "running" if status.running is not None else "nothing"


def summary(status: ContainerStatus) -> tuple[str, str, int]:
    """Return state, last state and restart count."""
    return describe(status.state), describe(status.last_state), status.restart_count


def app(
    *attempts: ContainerFacts,
    old: ContainerStatus | None = None,
    failing: str = "",
    gates: FeatureGates | None = None,
    restart_policy: str = "Always",
    deleted_at: str | None = None,
) -> ContainerStatus:
    """Return the status of the only container of a pod."""
    pod = make_pod(
        restart_policy=restart_policy,
        deleted_at=deleted_at,
        status=make_status("Running", old) if old else None,
    )
    failures = {"app": failing} if failing else None
    return only(status_of(pod, *attempts, failing=failures, gates=gates).container_statuses)


def with_restarts(status: ContainerStatus, count: int) -> ContainerStatus:
    return structs.replace(status, restart_count=count)


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        pytest.param((), ("waiting ContainerCreating", "nothing", 0), id="none"),
        pytest.param((created("app"),), ("waiting", "nothing", 0), id="created"),
        pytest.param((unknown("app"),), ("waiting", "nothing", 0), id="unknown, never seen"),
        pytest.param((runs("app"),), ("running", "nothing", 0), id="running"),
        pytest.param((exited("app", 3),), ("terminated Error 3", "nothing", 0), id="exited"),
        pytest.param(
            (runs("app", 1), exited("app", 3, 0)),
            ("running", "terminated Error 3", 1),
            id="running again",
        ),
        pytest.param(
            (exited("app", 1, 0), exited("app", 3, 2), exited("app", 2, 1)),
            ("terminated Error 3", "terminated Error 2", 2),
            id="the two newest, in whatever order",
        ),
    ],
)
def test_the_newest_attempt_is_the_state_and_the_one_before_the_last_state(
    attempts: tuple[ContainerFacts, ...], expected: tuple[str, str, int]
) -> None:
    assert summary(app(*attempts)) == expected


def test_of_attempts_made_at_one_time_the_first_listed_is_the_newest() -> None:
    first, second = exited("app", 1), exited("app", 2)
    assert summary(app(first, second))[:2] == ("terminated Error 1", "terminated Error 2")


def test_an_attempt_is_shown_in_full() -> None:
    attempt = structs.replace(
        exited("app", 137),
        reason="OOMKilled",
        message="last words",
        image="app:2",
        image_ref="sha256:abc",
        user=LinuxContainerUser(uid=1000, gid=5, supplemental_groups=(7,)),
    )
    status = app(attempt)
    exit_ = status.state.terminated
    assert exit_ is not None
    assert (exit_.exit_code, exit_.reason, exit_.message) == (137, "OOMKilled", "last words")
    assert (exit_.started_at, exit_.finished_at) == (at("00:01"), at("00:59"))
    assert exit_.container_id == status.container_id == "fake://app-0"
    assert (status.image, status.image_id) == ("app:2", "sha256:abc")
    assert status.user is not None
    assert status.user.linux == attempt.user


def test_times_of_what_has_not_happened_may_be_none() -> None:
    unset: Any = None
    facts = ContainerFacts(
        name="app",
        state=ContainerRunState.EXITED,
        created_at=unset,
        started_at=unset,
        finished_at=unset,
    )
    assert (facts.created_at, facts.started_at, facts.finished_at) == (UNSET_TIME,) * 3
    exit_ = app(facts).state.terminated
    assert exit_ is not None
    assert to_document(exit_) | {"startedAt": None, "finishedAt": None} == to_document(exit_)


def test_a_container_that_was_not_created_shows_the_image_of_the_spec() -> None:
    status = app()
    assert (status.image, status.image_id, status.container_id) == ("app:1", "", "")


def test_strangers_in_the_runtime_are_not_shown() -> None:
    statuses = status_of(make_pod(), runs("app"), runs("pause")).container_statuses
    assert [status.name for status in statuses or ()] == ["app"]


def test_regular_containers_are_sorted_by_name_and_init_containers_are_as_in_the_spec() -> None:
    pod = make_pod(containers=("b", "a"), init_containers=("d", "c"))
    status = status_of(pod)
    assert [s.name for s in status.container_statuses or ()] == ["a", "b"]
    assert [s.name for s in status.init_container_statuses or ()] == ["d", "c"]


# Waiting for a start


@pytest.mark.parametrize(
    ("policy", "exit_code", "waits"),
    [
        ("Always", 0, True),
        ("Always", 1, True),
        ("OnFailure", 0, False),
        ("OnFailure", 1, True),
        ("Never", 1, False),
    ],
)
@pytest.mark.parametrize("gates", [FeatureGates(), RULES_OFF])
def test_a_container_in_back_off_waits_and_its_exit_is_the_last_state(
    policy: str, exit_code: int, *, waits: bool, gates: FeatureGates
) -> None:
    attempts = exited("app", exit_code, 1), exited("app", 9, 0)
    status = app(*attempts, failing="CrashLoopBackOff", restart_policy=policy, gates=gates)
    exit_ = describe(ContainerState(terminated=app(attempts[0]).state.terminated))
    if waits:
        assert summary(status) == ("waiting CrashLoopBackOff", exit_, 1)
        assert status.state.waiting is not None
        assert status.state.waiting.message == "try again"
    else:
        assert summary(status) == (exit_, "terminated Error 9", 1)


def test_a_container_that_is_to_restart_stays_ended_until_its_start_fails() -> None:
    assert describe(app(exited("app", 1)).state) == "terminated Error 1"


@pytest.mark.parametrize("attempt", [None, created("app"), unknown("app")])
def test_a_container_that_never_ran_waits_with_the_reason_its_start_failed(
    attempt: ContainerFacts | None,
) -> None:
    attempts = [attempt] if attempt else []
    assert summary(app(*attempts, failing="ErrImagePull")) == ("waiting ErrImagePull", "nothing", 0)


def test_a_running_container_has_no_failed_start() -> None:
    assert describe(app(runs("app"), failing="CrashLoopBackOff").state) == "running"


def test_a_pod_that_is_deleted_starts_nothing() -> None:
    status = app(exited("app", 1), failing="CrashLoopBackOff", deleted_at="2024-06-01T11:00:00Z")
    assert describe(status.state) == "terminated Error 1"


def rule(action: str) -> Container:
    codes = ContainerRestartRuleOnExitCodes(operator="In", values=(42,))
    rules = (ContainerRestartRule(action=action, exit_codes=codes),)
    return Container(name="app", restart_policy="Never", restart_policy_rules=rules)


@pytest.mark.parametrize(
    ("exit_code", "gates", "state"),
    [
        (42, FeatureGates(), "waiting CrashLoopBackOff"),
        (1, FeatureGates(), "terminated Error 1"),
        (42, RULES_OFF, "terminated Error 42"),
    ],
)
def test_a_restart_rule_makes_a_container_wait_that_its_pod_would_not_restart(
    exit_code: int, gates: FeatureGates, state: str
) -> None:
    pod = make_pod(restart_policy="Never")
    pod = structs.replace(pod, spec=structs.replace(pod.spec, containers=(rule("Restart"),)))
    failing = {"app": "CrashLoopBackOff"}
    status = status_of(pod, exited("app", exit_code), failing=failing, gates=gates)
    assert describe(only(status.container_statuses).state) == state


# The previous status


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        pytest.param(
            with_restarts(running("app"), 2),
            ("waiting ContainerCreating", "terminated ContainerStatusUnknown 137", 3),
            id="it ran",
        ),
        pytest.param(
            structs.replace(running("app"), last_state=ended("app", 5).state),
            ("waiting ContainerCreating", "terminated Error 5", 0),
            id="it ran, and had ended before",
        ),
        pytest.param(
            with_restarts(ended("app", 4), 2), ("terminated Error 4", "nothing", 2), id="it ended"
        ),
        pytest.param(
            with_restarts(waiting("app", "CrashLoopBackOff"), 2),
            ("waiting ContainerCreating", "nothing", 2),
            id="it waited",
        ),
    ],
)
def test_a_container_that_the_runtime_forgot_is_what_it_was_shown_to_be(
    old: ContainerStatus, expected: tuple[str, str, int]
) -> None:
    assert summary(app(old=old)) == expected


def test_a_container_lost_while_its_pod_is_deleted_was_not_restarted() -> None:
    status = app(old=with_restarts(running("app"), 2), deleted_at="2024-06-01T11:00:00Z")
    assert summary(status)[1:] == ("terminated ContainerStatusUnknown 137", 2)


@pytest.mark.parametrize("gates", [FeatureGates(), RESTART_ALL_OFF])
def test_a_container_that_ran_and_is_unknown_now_was_killed(gates: FeatureGates) -> None:
    status = app(unknown("app"), old=with_restarts(running("app"), 2), gates=gates)
    assert summary(status) == ("terminated ContainerStatusUnknown 137", "nothing", 3)


@pytest.mark.parametrize("old", [ended("app", 1), waiting("app")])
def test_a_container_that_did_not_run_and_is_unknown_now_waits(old: ContainerStatus) -> None:
    assert describe(app(unknown("app"), old=old).state) == "waiting"


@pytest.mark.parametrize(
    ("old", "attempt", "expected", "without"),
    [
        pytest.param(with_restarts(running("app"), 5), runs("app", 2), 5, 2, id="fewer now"),
        pytest.param(with_restarts(running("app"), 1), runs("app", 2), 2, 2, id="more now"),
        pytest.param(with_restarts(ended("app"), 2), runs("app", 2), 3, 2, id="runs again"),
        pytest.param(with_restarts(ended("app"), 2), runs("app", 4), 4, 4, id="runs again, more"),
        pytest.param(with_restarts(ended("app"), 5), exited("app", 1, 2), 5, 2, id="ended again"),
    ],
)
def test_restarts_never_become_fewer_as_long_as_pods_restart_in_place(
    old: ContainerStatus, attempt: ContainerFacts, expected: int, without: int
) -> None:
    assert app(attempt, old=old).restart_count == expected
    assert app(attempt, old=old, gates=RESTART_ALL_OFF).restart_count == without


@pytest.mark.parametrize(
    ("old", "attempts", "expected"),
    [
        pytest.param(ended("app", 7), (runs("app", 1),), "terminated Error 7", id="another one"),
        pytest.param(
            structs.replace(ended("app", 7), container_id="fake://app-1"),
            (exited("app", 7, 1),),
            "nothing",
            id="the same one",
        ),
        pytest.param(
            structs.replace(running("app"), last_state=ended("app", 6).state),
            (runs("app", 1),),
            "terminated Error 6",
            id="an earlier one",
        ),
        pytest.param(
            ended("app", 7),
            (runs("app", 1), exited("app", 8)),
            "terminated Error 8",
            id="the runtime knows better",
        ),
    ],
)
def test_an_exit_that_the_runtime_forgot_stays_the_last_state(
    old: ContainerStatus, attempts: tuple[ContainerFacts, ...], expected: str
) -> None:
    assert describe(app(*attempts, old=old).last_state) == expected
    if len(attempts) == 1:
        assert describe(app(*attempts, old=old, gates=RESTART_ALL_OFF).last_state) == "nothing"


def test_mounts_come_from_the_spec_first_and_never_change_then() -> None:
    mount = VolumeMount(name="data", mount_path="/data")
    mount_status = VolumeMountStatus(name="data", mount_path="/data")
    pod = make_pod()
    container = structs.replace((pod.spec.containers or ())[0], volume_mounts=(mount,))
    pod = structs.replace(pod, spec=structs.replace(pod.spec, containers=(container,)))
    assert only(status_of(pod).container_statuses).volume_mounts == (mount_status,)
    assert only(status_of(pod, runs("app")).container_statuses).volume_mounts is None
    other = (VolumeMountStatus(name="other", mount_path="/other"),)
    old = structs.replace(running("app"), volume_mounts=other)
    pod = structs.replace(pod, status=make_status("Running", old))
    assert only(status_of(pod, runs("app")).container_statuses).volume_mounts == other


@pytest.mark.parametrize(
    ("mount", "able", "mode"),
    [
        (VolumeMount(recursive_read_only="Enabled"), True, None),
        (VolumeMount(read_only=True), True, "Disabled"),
        (VolumeMount(read_only=True, recursive_read_only="Disabled"), True, "Disabled"),
        (VolumeMount(read_only=True, recursive_read_only="IfPossible"), True, "Enabled"),
        (VolumeMount(read_only=True, recursive_read_only="IfPossible"), False, "Disabled"),
        (VolumeMount(read_only=True, recursive_read_only="Enabled"), True, "Enabled"),
        (VolumeMount(read_only=True, recursive_read_only="Enabled"), False, "Disabled"),
        (
            VolumeMount(
                read_only=True, recursive_read_only="Enabled", mount_propagation="Bidirectional"
            ),
            True,
            "Disabled",
        ),
        (
            VolumeMount(read_only=True, recursive_read_only="Enabled", mount_propagation="None"),
            True,
            "Enabled",
        ),
    ],
)
def test_a_read_only_mount_says_whether_what_lies_below_is_read_only_too(
    mount: VolumeMount, *, able: bool, mode: str | None
) -> None:
    pod = make_pod()
    container = Container(name="app", volume_mounts=(mount,))
    pod = structs.replace(pod, spec=structs.replace(pod.spec, containers=(container,)))
    status = generate_api_pod_status(pod, PodFacts(recursive_read_only=able), now=NOW)
    (mount_status,) = only(status.container_statuses).volume_mounts or ()
    assert mount_status.recursive_read_only == mode


# Init containers and sidecars


def test_everything_waits_for_the_pod_to_be_initialized_if_it_has_init_containers() -> None:
    pod = make_pod(init_containers=("init",))
    ephemeral = (EphemeralContainer(name="debug"),)
    pod = structs.replace(pod, spec=structs.replace(pod.spec, ephemeral_containers=ephemeral))
    status = status_of(pod)
    for statuses in (
        status.container_statuses,
        status.init_container_statuses,
        status.ephemeral_container_statuses,
    ):
        assert describe(only(statuses).state) == "waiting PodInitializing"


def test_an_init_container_that_succeeded_is_not_started_again() -> None:
    pod = make_pod(init_containers=("init",))
    status = status_of(pod, exited("init"), failing={"init": "CrashLoopBackOff"})
    assert describe(only(status.init_container_statuses).state) == "terminated Completed 0"


def test_an_init_container_that_failed_is_started_again() -> None:
    pod = make_pod(init_containers=("init",))
    status = only(
        status_of(
            pod, exited("init", 1), failing={"init": "CrashLoopBackOff"}
        ).init_container_statuses
    )
    assert summary(status) == ("waiting CrashLoopBackOff", "terminated Error 1", 0)


@pytest.mark.parametrize(
    ("attempt", "state"),
    [
        (runs("app"), "terminated Completed 0"),
        (exited("app", 1), "terminated Completed 0"),
        (created("app"), "terminated Completed 0"),
        (unknown("app"), "waiting PodInitializing"),
        (None, "waiting PodInitializing"),
    ],
)
def test_a_forgotten_init_container_had_succeeded_if_a_regular_one_was_created(
    attempt: ContainerFacts | None, state: str
) -> None:
    pod = make_pod(init_containers=("init",))
    status = status_of(pod, *([attempt] if attempt else []))
    assert describe(only(status.init_container_statuses).state) == state


def test_one_regular_container_is_enough_to_know_that_init_had_succeeded() -> None:
    pod = make_pod(containers=("a", "b"), init_containers=("init",))
    status = only(status_of(pod, runs("b")).init_container_statuses)
    assert describe(status.state) == "terminated Completed 0"


def test_a_forgotten_sidecar_waits_to_be_started_again() -> None:
    status = status_of(make_pod(sidecars=("proxy",)), runs("app"), failing={"proxy": "ErrPull"})
    assert describe(only(status.init_container_statuses).state) == "waiting ErrPull"


def test_a_forgotten_init_container_that_was_shown_to_have_failed_stays_so() -> None:
    pod = make_pod(init_containers=("init",))
    old = structs.replace(pod.status, init_container_statuses=(ended("init", 3),))
    status = status_of(structs.replace(pod, status=old), runs("app"))
    assert describe(only(status.init_container_statuses).state) == "terminated Error 3"


@pytest.mark.parametrize(
    ("exit_code", "state"),
    [
        pytest.param(1, "waiting CrashLoopBackOff", id="failed"),
        # Upstream treats a successful exit of any init container as its last.
        pytest.param(0, "terminated Completed 0", id="succeeded"),
    ],
)
def test_a_sidecar_waits_for_its_next_start_if_it_failed(exit_code: int, state: str) -> None:
    pod = make_pod(sidecars=("proxy",), restart_policy="Never")
    attempts = exited("proxy", exit_code), runs("app")
    status = status_of(pod, *attempts, failing={"proxy": "CrashLoopBackOff"})
    assert describe(only(status.init_container_statuses).state) == state


# Restart of the whole pod in place

RESTARTING = PodCondition(type="AllContainersRestarting", status="True")


def restarting(old: ContainerStatus, *conditions: PodCondition) -> Pod:
    status = structs.replace(make_status("Running", old), conditions=conditions)
    pod = make_pod(restart_policy="Never", status=status)
    containers = (rule("RestartAllContainers"),)
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=containers))


@pytest.mark.parametrize("old", [running("app"), ended("app", 42)])
def test_a_container_removed_to_restart_the_pod_waits_with_a_reason(old: ContainerStatus) -> None:
    pod = restarting(with_restarts(old, 1), RESTARTING)
    expected = ("waiting RestartingAllContainers", "terminated RestartingAllContainers 137", 2)
    assert summary(only(status_of(pod).container_statuses)) == expected


def test_a_container_removed_to_restart_the_pod_is_counted_once() -> None:
    pod = restarting(with_restarts(running("app"), 1), RESTARTING)
    first = status_of(pod)
    again = structs.replace(pod, status=structs.replace(first, conditions=(RESTARTING,)))
    assert only(status_of(again).container_statuses).restart_count == 2


def test_a_container_lost_while_the_pod_restarts_says_so() -> None:
    status = status_of(restarting(running("app"), RESTARTING), unknown("app"))
    assert summary(only(status.container_statuses))[0] == "terminated RestartingAllContainers 137"


def test_without_the_gate_a_removed_container_was_lost() -> None:
    status = status_of(restarting(running("app"), RESTARTING), gates=RESTART_ALL_OFF)
    assert summary(only(status.container_statuses))[1] == "terminated ContainerStatusUnknown 137"


def test_an_ephemeral_container_is_shown_like_a_regular_one() -> None:
    pod = make_pod()
    ephemeral = (EphemeralContainer(name="debug", image="busybox"),)
    pod = structs.replace(pod, spec=structs.replace(pod.spec, ephemeral_containers=ephemeral))
    status = only(status_of(pod, runs("app"), exited("debug", 2)).ephemeral_container_statuses)
    assert summary(status) == ("terminated Error 2", "nothing", 0)
    assert status.started is None


def test_started_is_carried_over_while_a_container_runs_on() -> None:
    old = structs.replace(running("debug"), started=True)
    pod = make_pod()
    pod = structs.replace(
        pod,
        spec=structs.replace(pod.spec, ephemeral_containers=(EphemeralContainer(name="debug"),)),
        status=structs.replace(pod.status, ephemeral_container_statuses=(old,)),
    )
    assert only(status_of(pod, runs("debug")).ephemeral_container_statuses).started is True
    assert only(status_of(pod, exited("debug")).ephemeral_container_statuses).started is None


def message_of(state: ContainerState) -> str:
    """Return the message of an exit."""
    assert state.terminated is not None
    return state.terminated.message


def test_messages_of_exits_that_were_not_observed() -> None:
    assert message_of(app(unknown("app"), old=running("app")).state) == (
        "The container could not be located when the pod was terminated"
    )
    # Two spaces, as in upstream's message.
    assert message_of(app(old=running("app")).last_state) == (
        "The container could not be located when the pod was deleted.  "
        "The container used to be Running"
    )
    removed = only(status_of(restarting(running("app"), RESTARTING)).container_statuses)
    assert removed.state.waiting is not None
    assert message_of(removed.last_state) == removed.state.waiting.message
    assert removed.state.waiting.message == (
        "The container is removed because RestartAllContainers in place"
    )
    done = only(status_of(make_pod(init_containers=("init",)), runs("app")).init_container_statuses)
    assert message_of(done.state) == (
        "Unable to get init container status from container runtime and pod has been initialized, "
        "treat it as exited normally"
    )


def test_a_start_that_the_runtime_did_not_note_is_unset() -> None:
    attempt = structs.replace(runs("app"), started_at=UNSET_TIME)
    state = app(attempt).state.running
    assert state is not None
    assert state.started_at == UNSET_TIME
