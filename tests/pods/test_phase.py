import pytest
from msgspec import structs

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import (
    Container,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
)
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import ContainerStateTerminated, ContainerStatus
from podstatus.pods.phase import get_phase
from podstatus.testing.builders import ended, make_pod, make_static_pod, running, waiting

RULES_OFF = FeatureGates(container_restart_rules=False)
RESTART_ALL_OFF = FeatureGates(restart_all_containers_on_container_exits=False)


def crash_looping(name: str, exit_code: int = 1) -> ContainerStatus:
    return structs.replace(
        waiting(name, "CrashLoopBackOff"), last_state=ended(name, exit_code).state
    )


def starting(name: str) -> ContainerStatus:
    return structs.replace(running(name), started=False)


def blank(name: str) -> ContainerStatus:
    """Return a status with a last state, but no current state."""
    return ContainerStatus(name=name, last_state=ended(name).state)


def restarting_all(name: str) -> ContainerStatus:
    state = structs.replace(
        ended(name).state,
        terminated=ContainerStateTerminated(exit_code=137, reason="RestartingAllContainers"),
    )
    return structs.replace(ended(name), state=state)


def with_spec(
    pod: Pod,
    *,
    init: tuple[Container, ...] = (),
    containers: tuple[Container, ...] = (Container(name="app"),),
) -> Pod:
    spec = structs.replace(pod.spec, init_containers=init, containers=containers)
    return structs.replace(pod, spec=spec)


INIT = Container(name="init")
SIDECAR = Container(name="sidecar", restart_policy="Always")


def phase(
    pod: Pod,
    *statuses: ContainerStatus,
    terminal: bool = False,
    initialized: bool = False,
    gates: FeatureGates | None = None,
) -> str:
    return get_phase(
        pod,
        statuses,
        pod_is_terminal=terminal,
        pod_has_initialized=initialized,
        gates=gates or FeatureGates(),
    )


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        pytest.param((), "Pending", id="nothing known"),
        pytest.param((running("a"),), "Pending", id="one unknown"),
        pytest.param((running("a"), blank("b")), "Pending", id="one without a state"),
        pytest.param((waiting("a"), waiting("b")), "Pending", id="all waiting"),
        pytest.param((running("a"), waiting("b")), "Pending", id="one never started"),
        pytest.param((running("a"), running("b")), "Running", id="all running"),
        pytest.param((running("a"), ended("b", 1)), "Running", id="one failed"),
        pytest.param((running("a"), crash_looping("b")), "Running", id="one crash looping"),
        pytest.param((crash_looping("a"), crash_looping("b")), "Running", id="all crash looping"),
        pytest.param((waiting("a"), ended("b")), "Pending", id="one ended, one never started"),
    ],
)
def test_phase_while_the_pod_lives(statuses: tuple[ContainerStatus, ...], expected: str) -> None:
    assert phase(make_pod(containers=("a", "b")), *statuses) == expected


@pytest.mark.parametrize(
    ("policy", "exit_codes", "expected"),
    [
        ("Always", (0, 0), "Running"),
        ("Always", (0, 1), "Running"),
        ("OnFailure", (0, 0), "Succeeded"),
        ("OnFailure", (0, 1), "Running"),
        ("Never", (0, 0), "Succeeded"),
        ("Never", (0, 1), "Failed"),
        ("Never", (1, 1), "Failed"),
        ("", (0, 0), "Running"),
    ],
)
@pytest.mark.parametrize("gates", [FeatureGates(), RESTART_ALL_OFF])
def test_restart_policy_decides_what_follows_when_all_containers_have_ended(
    policy: str, exit_codes: tuple[int, int], expected: str, gates: FeatureGates
) -> None:
    pod = make_pod(containers=("a", "b"), restart_policy=policy)
    statuses = (ended("a", exit_codes[0]), ended("b", exit_codes[1]))
    assert phase(pod, *statuses, gates=gates) == expected


@pytest.mark.parametrize(
    ("policy", "exit_code", "expected"),
    [
        ("Always", 0, "Running"),
        ("OnFailure", 0, "Succeeded"),
        ("OnFailure", 1, "Running"),
        ("Never", 1, "Failed"),
        ("", 0, "Succeeded"),
        ("", 1, "Running"),
    ],
)
def test_without_restart_rules_the_pod_policy_alone_decides(
    policy: str, exit_code: int, expected: str
) -> None:
    pod = make_pod(restart_policy=policy)
    assert phase(pod, ended("app", exit_code), gates=RULES_OFF) == expected


@pytest.mark.parametrize(("exit_code", "expected"), [(0, "Succeeded"), (1, "Failed")])
def test_a_terminal_pod_restarts_nothing(exit_code: int, expected: str) -> None:
    assert phase(make_pod(), ended("app", exit_code), terminal=True) == expected


def test_a_static_pod_restarts_even_when_terminal() -> None:
    assert phase(make_static_pod(), ended("app", 1), terminal=True) == "Running"


def test_a_terminal_crash_loop_has_failed_even_if_its_last_exit_was_zero() -> None:
    assert phase(make_pod(), crash_looping("app", 0), terminal=True) == "Failed"


def test_a_pod_without_containers_is_pending() -> None:
    assert phase(with_spec(make_pod(), containers=())) == "Pending"


@pytest.mark.parametrize(
    ("policy", "init", "expected"),
    [
        pytest.param("Always", (), "Pending", id="unknown"),
        pytest.param("Always", (blank("init"),), "Pending", id="without a state"),
        pytest.param("Always", (waiting("init"),), "Pending", id="waiting"),
        pytest.param("Always", (running("init"),), "Pending", id="running"),
        pytest.param("Always", (ended("init"),), "Running", id="succeeded"),
        pytest.param("Always", (ended("init", 1),), "Running", id="failed, to be retried"),
        pytest.param("Never", (ended("init", 1),), "Failed", id="failed for good"),
        pytest.param("Never", (crash_looping("init"),), "Failed", id="had failed for good"),
        pytest.param("OnFailure", (crash_looping("init"),), "Running", id="is retried"),
    ],
)
@pytest.mark.parametrize("gates", [FeatureGates(), RULES_OFF])
def test_phase_follows_the_init_container(
    policy: str, init: tuple[ContainerStatus, ...], expected: str, gates: FeatureGates
) -> None:
    pod = with_spec(make_pod(restart_policy=policy), init=(INIT,))
    assert phase(pod, running("app"), *init, gates=gates) == expected


@pytest.mark.parametrize(
    ("sidecar", "initialized", "expected"),
    [
        pytest.param((), False, "Pending", id="unknown"),
        pytest.param((waiting("sidecar"),), False, "Pending", id="waiting"),
        pytest.param((waiting("sidecar"),), True, "Pending", id="waiting once initialized"),
        pytest.param((starting("sidecar"),), False, "Pending", id="not started"),
        pytest.param((starting("sidecar"),), True, "Running", id="not started once initialized"),
        pytest.param((running("sidecar"),), False, "Running", id="started"),
        pytest.param((ended("sidecar", 1),), False, "Running", id="ended"),
        pytest.param((crash_looping("sidecar"),), False, "Running", id="crash looping"),
    ],
)
def test_phase_follows_the_sidecar(
    *, sidecar: tuple[ContainerStatus, ...], initialized: bool, expected: str
) -> None:
    pod = with_spec(make_pod(), init=(SIDECAR,))
    assert phase(pod, running("app"), *sidecar, initialized=initialized) == expected


@pytest.mark.parametrize(
    ("sidecar", "expected"),
    [(running("sidecar"), "Running"), (ended("sidecar", 1), "Succeeded")],
)
def test_a_running_sidecar_keeps_the_pod_running_and_its_exit_code_does_not_count(
    sidecar: ContainerStatus, expected: str
) -> None:
    pod = with_spec(make_pod(restart_policy="Never"), init=(SIDECAR,))
    assert phase(pod, sidecar, ended("app")) == expected


def rule(action: str, *exit_codes: int) -> Container:
    codes = ContainerRestartRuleOnExitCodes(operator="In", values=exit_codes)
    rules = (ContainerRestartRule(action=action, exit_codes=codes),)
    return Container(name="app", restart_policy="Never", restart_policy_rules=rules)


@pytest.mark.parametrize(
    ("exit_code", "gates", "expected"),
    [
        (42, FeatureGates(), "Running"),
        (1, FeatureGates(), "Failed"),
        (42, RULES_OFF, "Failed"),
    ],
)
def test_a_container_rule_overrides_the_pod_policy(
    exit_code: int, gates: FeatureGates, expected: str
) -> None:
    pod = with_spec(make_pod(restart_policy="Never"), containers=(rule("Restart", 42),))
    assert phase(pod, ended("app", exit_code), gates=gates) == expected


@pytest.mark.parametrize(
    ("gates", "expected"), [(FeatureGates(), "Running"), (RULES_OFF, "Failed")]
)
def test_the_policy_of_an_init_container_counts_with_restart_rules_only(
    gates: FeatureGates, expected: str
) -> None:
    init = Container(name="init", restart_policy="OnFailure")
    pod = with_spec(make_pod(restart_policy="Never"), init=(init,))
    assert phase(pod, ended("init", 1), running("app"), gates=gates) == expected


@pytest.mark.parametrize(("gates", "expected"), [(None, "Running"), (RESTART_ALL_OFF, "Failed")])
def test_a_container_stopped_to_restart_the_pod_in_place_comes_back(
    gates: FeatureGates | None, expected: str
) -> None:
    pod = make_pod(restart_policy="Never")
    assert phase(pod, restarting_all("app"), gates=gates) == expected


def test_an_init_container_stopped_to_restart_the_pod_in_place_has_not_failed() -> None:
    pod = with_spec(make_pod(restart_policy="Never"), init=(INIT,))
    assert phase(pod, restarting_all("init"), waiting("app")) == "Pending"
    failed = phase(pod, restarting_all("init"), waiting("app"), gates=RESTART_ALL_OFF)
    assert failed == "Failed"


def test_of_several_statuses_of_one_container_the_first_counts() -> None:
    assert phase(make_pod(), running("app"), waiting("app")) == "Running"


def test_no_statuses_at_all_are_like_an_empty_list() -> None:
    pod = Pod(spec=PodSpec(containers=(Container(name="app"),)))
    nothing = get_phase(
        pod, None, pod_is_terminal=False, pod_has_initialized=False, gates=FeatureGates()
    )
    assert nothing == "Pending"
