import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.status.decide.terminate import (
    has_pod_initialized,
    initialized_containers,
    terminate_status,
)
from podstatus.testing.builders import (
    ended,
    make_pod,
    make_static_pod,
    make_status,
    running,
    waiting,
)

SIDECAR = Container(name="sidecar", restart_policy="Always")


def restarted(name: str, exit_code: int = 1) -> ContainerStatus:
    return structs.replace(waiting(name), last_state=ended(name, exit_code).state)


def with_init(
    status: PodStatus | None = None, *, init: tuple[Container, ...] = (Container(name="init"),)
) -> Pod:
    pod = make_pod(status=status)
    return structs.replace(pod, spec=structs.replace(pod.spec, init_containers=init))


def init_status(*init: ContainerStatus, regular: tuple[ContainerStatus, ...] = ()) -> PodStatus:
    return PodStatus(init_container_statuses=init, container_statuses=regular)


def exits(statuses: tuple[ContainerStatus, ...] | None) -> list[int | None]:
    return [
        None if status.state.terminated is None else status.state.terminated.exit_code
        for status in statuses or ()
    ]


# Containers


def test_a_container_that_was_lost_has_failed_as_if_killed() -> None:
    status = terminate_status(make_pod(), make_status("Running", running("app")))
    assert status.container_statuses is not None
    terminated = status.container_statuses[0].state.terminated
    assert terminated is not None
    assert (terminated.exit_code, terminated.reason, terminated.message) == (
        137,
        "ContainerStatusUnknown",
        "The container could not be located when the pod was terminated",
    )


def test_a_known_exit_is_kept() -> None:
    status = make_status("Running", ended("a", 3), running("b"), waiting("c"))
    pod = make_pod(containers=("a", "b", "c"))
    assert exits(terminate_status(pod, status).container_statuses) == [3, 137, 137]


def test_only_the_state_of_a_lost_container_changes() -> None:
    before = structs.replace(running("app"), restart_count=4, last_state=ended("app", 2).state)
    after = terminate_status(make_pod(), make_status("Running", before)).container_statuses
    assert after is not None
    assert structs.replace(after[0], state=before.state) == before


def test_containers_that_had_no_chance_to_start_stay_waiting() -> None:
    status = init_status(ended("init", 1), regular=(waiting("app"),))
    terminated = terminate_status(with_init(status), status)
    assert exits(terminated.init_container_statuses) == [1]
    assert exits(terminated.container_statuses) == [None]


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        pytest.param((waiting("a"), waiting("b")), [137, None], id="none tried: the first"),
        pytest.param((running("a"), waiting("b")), [137, None], id="first runs"),
        pytest.param((waiting("a"), running("b")), [137, 137], id="all up to the last tried"),
        pytest.param((ended("a"), restarted("b"), waiting("c")), [0, 137, None], id="retried"),
    ],
)
def test_init_containers_up_to_the_last_one_tried_have_failed(
    init: tuple[ContainerStatus, ...], expected: list[int | None]
) -> None:
    status = init_status(*init)
    terminated = terminate_status(with_init(status), status)
    assert exits(terminated.init_container_statuses) == expected


def test_ephemeral_containers_are_left_alone() -> None:
    status = PodStatus(ephemeral_container_statuses=(running("debug"),))
    terminated = terminate_status(make_pod(), status)
    assert terminated.ephemeral_container_statuses == status.ephemeral_container_statuses


def test_nil_lists_stay_nil() -> None:
    terminated = terminate_status(make_pod(), PodStatus(phase="Failed"))
    assert terminated == PodStatus(phase="Failed")


def test_surprise_18_initialized_is_judged_by_the_pod_but_the_given_status_is_changed() -> None:
    started = init_status(ended("init"), regular=(running("app"),))
    not_started = init_status(waiting("init"), regular=(waiting("app"),))
    by_pod = terminate_status(with_init(started), not_started)
    assert exits(by_pod.container_statuses) == [137]
    by_pod = terminate_status(with_init(not_started), started)
    assert exits(by_pod.container_statuses) == [None]


# Phase


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("Succeeded", "Succeeded"),
        ("Failed", "Failed"),
        ("Pending", "Failed"),
        ("Running", "Failed"),
        ("Unknown", "Failed"),
        ("", "Failed"),
    ],
)
def test_the_phase_becomes_terminal(phase: str, expected: str) -> None:
    assert terminate_status(make_pod(), PodStatus(phase=phase)).phase == expected


def test_a_static_pod_keeps_its_phase() -> None:
    status = terminate_status(make_static_pod(), make_status("Running", running("app")))
    assert status.phase == "Running"
    assert exits(status.container_statuses) == [137]


# Initialized


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(PodStatus(), False, id="nothing known"),
        pytest.param(init_status(waiting("init")), False, id="not yet"),
        pytest.param(init_status(running("init")), False, id="under way"),
        pytest.param(init_status(ended("init", 1)), False, id="failed"),
        pytest.param(init_status(ended("init")), True, id="succeeded"),
        pytest.param(init_status(restarted("init", 0)), True, id="had succeeded"),
        pytest.param(init_status(ended("other")), False, id="not the container of the spec"),
        pytest.param(init_status(regular=(waiting("app"),)), False, id="regular waits"),
        pytest.param(init_status(regular=(running("app"),)), True, id="regular runs"),
        pytest.param(init_status(regular=(restarted("app"),)), True, id="regular has run"),
        pytest.param(
            init_status(regular=(ContainerStatus(name="app"),)), True, id="regular without state"
        ),
    ],
)
def test_a_pod_has_initialized_if_there_is_evidence(*, status: PodStatus, expected: bool) -> None:
    assert has_pod_initialized(with_init(status)) is expected


def test_a_pod_without_init_containers_has_always_initialized() -> None:
    assert has_pod_initialized(make_pod())


@pytest.mark.parametrize(
    ("sidecar", "expected"),
    [
        (running("sidecar"), True),
        (structs.replace(running("sidecar"), started=False), False),
        (structs.replace(running("sidecar"), started=None), False),
        (ended("sidecar"), False),
    ],
)
def test_a_sidecar_that_comes_last_must_have_started(
    *, sidecar: ContainerStatus, expected: bool
) -> None:
    assert has_pod_initialized(with_init(init_status(sidecar), init=(SIDECAR,))) is expected


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (None, 0),
        ((), 0),
        ((waiting("a"), waiting("b")), 1),
        ((running("a"), waiting("b")), 1),
        ((waiting("a"), ended("b"), waiting("c")), 2),
        ((waiting("a"), restarted("b")), 2),
    ],
)
def test_trailing_containers_that_were_never_tried_do_not_count(
    statuses: tuple[ContainerStatus, ...] | None, expected: int
) -> None:
    assert initialized_containers(statuses) == (statuses or ())[:expected]
