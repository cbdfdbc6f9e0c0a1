import pytest
from msgspec import structs

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import (
    Container,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
)
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodReadinessGate
from podstatus.kube.objects.pod_status import ContainerStatus, PodCondition, PodStatus
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    NetworkMode,
    PodFacts,
    SandboxFacts,
    SandboxState,
)
from podstatus.status.decide.generate_conditions import (
    generate_all_containers_restarting_condition,
    generate_containers_ready_condition,
    generate_containers_ready_condition_for_terminal_phase,
    generate_pod_initialized_condition,
    generate_pod_ready_condition,
    generate_pod_ready_condition_for_terminal_phase,
    generate_pod_ready_to_start_containers_condition,
    has_any_regular_container_started,
    need_to_reconcile_pod_readiness,
)
from podstatus.testing.builders import ended, make_pod, make_status, running, waiting
from tests.support.status_node import of_generation

Statuses = tuple[ContainerStatus, ...] | None
Said = tuple[str, str, str]

INIT = Container(name="init")
SIDECAR = Container(name="sidecar", restart_policy="Always")


def said(condition: PodCondition) -> Said:
    return condition.status, condition.reason, condition.message


def not_ready(message: str) -> Said:
    return "False", "ContainersNotReady", message


def not_initialized(message: str) -> Said:
    return "False", "ContainersNotInitialized", message


def with_init(*init: Container) -> Pod:
    pod = make_pod(containers=("a", "b"))
    return structs.replace(pod, spec=structs.replace(pod.spec, init_containers=init))


def with_gates(*gates: str, status: PodStatus | None = None) -> Pod:
    pod = make_pod(status=status)
    readiness_gates = tuple(PodReadinessGate(condition_type=gate) for gate in gates)
    return structs.replace(pod, spec=structs.replace(pod.spec, readiness_gates=readiness_gates))


def initialized(name: str) -> ContainerStatus:
    return structs.replace(ended(name), ready=True)


def unready(name: str) -> ContainerStatus:
    return running(name, ready=False)


# ContainersReady


@pytest.mark.parametrize(
    ("statuses", "phase", "expected"),
    [
        pytest.param(None, "Running", ("False", "UnknownContainerStatuses", ""), id="nil"),
        pytest.param(
            (),
            "Running",
            not_ready("containers with unknown status: [sidecar a b]"),
            id="none",
        ),
        pytest.param(
            (running("sidecar"), running("a"), running("b")),
            "Running",
            ("True", "", ""),
            id="all ready",
        ),
        pytest.param(
            (running("sidecar"), unready("a"), unready("b")),
            "Running",
            not_ready("containers with unready status: [a b]"),
            id="regular ones not ready",
        ),
        pytest.param(
            (unready("sidecar"), running("a")),
            "Running",
            not_ready(
                "containers with unknown status: [b], containers with unready status: [sidecar]"
            ),
            id="some unknown, some not ready",
        ),
        pytest.param(
            (ended("sidecar"), ended("a"), ended("b")),
            "Succeeded",
            ("False", "PodCompleted", ""),
            id="succeeded",
        ),
        pytest.param(
            (ended("sidecar"), ended("a")),
            "Succeeded",
            not_ready(
                "containers with unknown status: [b], containers with unready status: [sidecar a]"
            ),
            id="succeeded, but not all known",
        ),
        pytest.param((), "Failed", ("False", "PodFailed", ""), id="failed"),
        pytest.param(
            (running("sidecar"), running("a"), running("b")),
            "Failed",
            ("False", "PodFailed", ""),
            id="failed while all are ready",
        ),
    ],
)
def test_containers_ready_says_which_containers_are_not(
    statuses: Statuses, phase: str, expected: Said
) -> None:
    pod = with_init(INIT, SIDECAR)
    condition = generate_containers_ready_condition(pod, PodStatus(), statuses, phase)
    assert condition.type == "ContainersReady"
    assert said(condition) == expected


def test_an_ordinary_init_container_need_not_be_ready() -> None:
    statuses = (unready("init"), running("a"), running("b"))
    ready = generate_containers_ready_condition(with_init(INIT), None, statuses, "Running")
    assert ready.status == "True"


# Ready


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param(
            (PodCondition(type="x", status="True"), PodCondition(type="y", status="True")),
            ("True", "", ""),
            id="all open",
        ),
        pytest.param(
            (PodCondition(type="x", status="False"), PodCondition(type="y", status="True")),
            (
                "False",
                "ReadinessGatesNotReady",
                'the status of pod readiness gate "x" is not "True", but False',
            ),
            id="one closed",
        ),
        pytest.param(
            (PodCondition(type="y", status="Unknown"),),
            (
                "False",
                "ReadinessGatesNotReady",
                (
                    'corresponding condition of pod readiness gate "x" does not exist., '
                    'the status of pod readiness gate "y" is not "True", but Unknown'
                ),
            ),
            id="one missing, one unknown",
        ),
    ],
)
def test_ready_follows_the_readiness_gates(
    conditions: tuple[PodCondition, ...], expected: Said
) -> None:
    pod = with_gates("x", "y")
    ready = generate_pod_ready_condition(pod, None, conditions, (running("app"),), "Running")
    assert ready.type == "Ready"
    assert said(ready) == expected


def test_unready_containers_go_before_readiness_gates() -> None:
    ready = generate_pod_ready_condition(with_gates("x"), None, (), (unready("app"),), "Running")
    assert ready.reason == "ContainersNotReady"


@pytest.mark.parametrize(
    ("shown", "gate", "expected"),
    [
        pytest.param("True", "True", False, id="as it should be"),
        pytest.param("True", "False", True, id="a gate has closed"),
        pytest.param("False", "True", True, id="a gate has opened"),
        pytest.param(None, "True", False, id="Ready was never decided"),
    ],
)
def test_readiness_is_reconciled_when_a_gate_has_moved(
    *, shown: str | None, gate: str, expected: bool
) -> None:
    status = make_status("Running", running("app"), x=gate)
    if shown is not None:
        ready = PodCondition(type="Ready", status=shown)
        status = structs.replace(status, conditions=(*(status.conditions or ()), ready))
    assert need_to_reconcile_pod_readiness(with_gates("x", status=status)) is expected


def test_readiness_is_reconciled_when_only_the_message_would_change() -> None:
    ready = PodCondition(type="Ready", status="False", message="old")
    status = make_status("Running", running("app"), x="False")
    status = structs.replace(status, conditions=(*(status.conditions or ()), ready))
    assert need_to_reconcile_pod_readiness(with_gates("x", status=status))


def test_readiness_of_a_pod_without_gates_is_not_reconciled() -> None:
    status = make_status("Running", unready("app"), Ready="True")
    assert not need_to_reconcile_pod_readiness(make_pod(status=status))


# Initialized


@pytest.mark.parametrize(
    ("statuses", "phase", "expected"),
    [
        pytest.param(None, "Pending", ("False", "UnknownContainerStatuses", ""), id="nil"),
        pytest.param(
            (),
            "Pending",
            not_initialized("containers with unknown status: [init sidecar]"),
            id="none",
        ),
        pytest.param(
            (unready("init"), waiting("sidecar")),
            "Pending",
            not_initialized("containers with incomplete status: [init sidecar]"),
            id="under way",
        ),
        pytest.param(
            (initialized("init"), unready("sidecar")),
            "Pending",
            ("True", "", ""),
            id="done, the sidecar has started though it is not ready",
        ),
        pytest.param(
            (initialized("init"), waiting("sidecar"), ended("a", 1)),
            "Running",
            ("True", "", ""),
            id="a regular container was started, so it was initialized before",
        ),
        pytest.param(
            (unready("init"), waiting("sidecar")),
            "Succeeded",
            ("True", "PodCompleted", ""),
            id="succeeded",
        ),
        pytest.param(
            (initialized("init"),),
            "Succeeded",
            not_initialized("containers with unknown status: [sidecar]"),
            id="succeeded, but not all known",
        ),
        pytest.param(
            (initialized("init"), waiting("sidecar")),
            "Failed",
            not_initialized("containers with incomplete status: [sidecar]"),
            id="failed",
        ),
    ],
)
def test_initialized_says_which_init_containers_are_missing(
    statuses: Statuses, phase: str, expected: Said
) -> None:
    condition = generate_pod_initialized_condition(
        with_init(INIT, SIDECAR), PodStatus(), statuses, phase, FeatureGates()
    )
    assert condition.type == "Initialized"
    assert said(condition) == expected


def test_a_pod_without_init_containers_is_initialized_even_if_nothing_is_known() -> None:
    condition = generate_pod_initialized_condition(
        make_pod(), PodStatus(), None, "Pending", FeatureGates()
    )
    assert said(condition) == ("True", "", "")


@pytest.mark.parametrize(("gate", "expected"), [(True, "True"), (False, "False")])
def test_once_initialized_a_pod_that_restarts_in_place_stays_so(
    *, gate: bool, expected: str
) -> None:
    condition = generate_pod_initialized_condition(
        with_init(INIT),
        make_status("Running", Initialized="True"),
        (waiting("init"), waiting("a"), waiting("b")),
        "Pending",
        FeatureGates(restart_all_containers_on_container_exits=gate),
    )
    assert condition.status == expected


def test_a_pod_that_was_not_initialized_before_does_not_become_so() -> None:
    old = make_status("Pending", Initialized="False", PodScheduled="True")
    condition = generate_pod_initialized_condition(
        with_init(INIT), old, (waiting("init"),), "Pending", FeatureGates()
    )
    assert condition.status == "False"


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (None, False),
        ((waiting("a"),), False),
        ((running("a"),), True),
        ((ended("a", 1),), True),
        ((running("init"),), False),
    ],
)
def test_a_regular_container_has_started_if_it_runs_or_has_run(
    *, statuses: Statuses, expected: bool
) -> None:
    assert has_any_regular_container_started(with_init(INIT).spec, statuses) is expected


# PodReadyToStartContainers


def sandbox(
    *,
    ready: bool = True,
    network: NetworkMode = NetworkMode.POD,
    ip: str | None = "10.0.0.1",
) -> SandboxFacts:
    state = SandboxState.READY if ready else SandboxState.NOT_READY
    return SandboxFacts(state=state, network=network, ip=ip)


@pytest.mark.parametrize(
    ("sandboxes", "host_network", "expected"),
    [
        pytest.param((), False, "False", id="none"),
        pytest.param((sandbox(),), False, "True", id="one"),
        pytest.param((sandbox(), sandbox(ready=False)), False, "True", id="an old one is left"),
        pytest.param((sandbox(), sandbox()), False, "False", id="two ready"),
        pytest.param((sandbox(ready=False), sandbox()), False, "False", id="newest not ready"),
        pytest.param((sandbox(ip=""),), False, "False", id="without an address"),
        pytest.param((sandbox(ip=None),), False, "True", id="no network status"),
        pytest.param((sandbox(network=NetworkMode.NODE),), False, "False", id="wrong network"),
        pytest.param(
            (sandbox(network=NetworkMode.NODE, ip=""),), True, "True", id="network of the node"
        ),
        pytest.param((sandbox(),), True, "False", id="should be on the node's network"),
    ],
)
def test_containers_can_start_when_there_is_one_usable_sandbox(
    *, sandboxes: tuple[SandboxFacts, ...], host_network: bool, expected: str
) -> None:
    pod = make_pod()
    pod = structs.replace(pod, spec=structs.replace(pod.spec, host_network=host_network))
    condition = generate_pod_ready_to_start_containers_condition(
        pod, None, PodFacts(sandboxes=sandboxes)
    )
    assert condition.type == "PodReadyToStartContainers"
    assert said(condition) == (expected, "", "")


# AllContainersRestarting

RULE = ContainerRestartRule(
    action="RestartAllContainers",
    exit_codes=ContainerRestartRuleOnExitCodes(operator="In", values=(42,)),
)


def fact(name: str, state: ContainerRunState, exit_code: int = 0) -> ContainerFacts:
    return ContainerFacts(name=name, state=state, exit_code=exit_code)


EXITED, RUNNING = ContainerRunState.EXITED, ContainerRunState.RUNNING
RESTARTING = (
    "True",
    "RestartAllContainersStarted",
    "container exited with restart policy rule",
)
NOT_RESTARTING = ("False", "", "")


@pytest.mark.parametrize(
    ("facts", "old", "phase", "expected"),
    [
        pytest.param((fact("a", EXITED, 42),), None, "Running", RESTARTING, id="rule matches"),
        pytest.param((fact("a", EXITED, 1),), None, "Running", NOT_RESTARTING, id="other code"),
        pytest.param((fact("b", EXITED, 42),), None, "Running", NOT_RESTARTING, id="no rule"),
        pytest.param((fact("a", RUNNING, 42),), None, "Running", NOT_RESTARTING, id="running"),
        pytest.param(
            (fact("a", EXITED, 1),),
            make_status("Running", ended("a", 42)),
            "Running",
            RESTARTING,
            id="the API status matches",
        ),
        pytest.param(
            (fact("a", RUNNING),),
            make_status("Running", ended("a", 42)),
            "Running",
            NOT_RESTARTING,
            id="the API status of what runs is not looked at",
        ),
        pytest.param(
            (fact("b", RUNNING),),
            make_status("Running", AllContainersRestarting="True"),
            "Running",
            RESTARTING,
            id="still under way",
        ),
        pytest.param(
            (fact("b", RUNNING),),
            make_status("Running", AllContainersRestarting="False", Ready="True"),
            "Running",
            NOT_RESTARTING,
            id="was never under way",
        ),
        pytest.param((fact("init", EXITED, 42),), None, "Running", RESTARTING, id="init rule"),
        pytest.param(
            (),
            make_status("Running", AllContainersRestarting="True"),
            "Running",
            NOT_RESTARTING,
            id="all old containers are gone",
        ),
        pytest.param(
            (fact("a", EXITED, 42),), None, "Failed", ("False", "PodFailed", ""), id="failed"
        ),
        pytest.param(
            (fact("a", EXITED, 42),),
            None,
            "Succeeded",
            ("False", "PodCompleted", ""),
            id="succeeded",
        ),
    ],
)
def test_all_containers_restart_while_a_rule_asked_for_it(
    facts: tuple[ContainerFacts, ...], old: PodStatus | None, phase: str, expected: Said
) -> None:
    pod = of_generation(make_pod(), 3)
    spec = structs.replace(
        pod.spec,
        init_containers=(Container(name="init", restart_policy_rules=(RULE,)),),
        containers=(Container(name="a", restart_policy_rules=(RULE,)), Container(name="b")),
    )
    pod = structs.replace(pod, spec=spec)
    condition = generate_all_containers_restarting_condition(
        pod, PodFacts(containers=facts), old, phase
    )
    assert condition.type == "AllContainersRestarting"
    assert said(condition) == expected
    assert condition.observed_generation == 0


# Terminal phases and generations


@pytest.mark.parametrize(
    ("phase", "reason"), [("Failed", "PodFailed"), ("Succeeded", "PodCompleted"), ("Running", "")]
)
def test_a_pod_that_has_ended_is_not_ready_and_says_why(phase: str, reason: str) -> None:
    containers = generate_containers_ready_condition_for_terminal_phase(make_pod(), None, phase)
    pod = generate_pod_ready_condition_for_terminal_phase(make_pod(), None, phase)
    assert (containers.type, pod.type) == ("ContainersReady", "Ready")
    assert said(containers) == said(pod) == ("False", reason, "")


@pytest.mark.parametrize(("old", "generation"), [(PodStatus(), 3), (None, 0)])
def test_conditions_carry_the_generation_unless_there_is_no_old_status(
    old: PodStatus | None, generation: int
) -> None:
    pod = of_generation(make_pod(), 3)
    decided = (
        generate_containers_ready_condition(pod, old, (running("app"),), "Running"),
        generate_containers_ready_condition(pod, old, None, "Running"),
        generate_pod_ready_condition(pod, old, (), (running("app"),), "Running"),
        generate_pod_ready_condition(pod, old, (), (), "Failed"),
        generate_pod_ready_to_start_containers_condition(pod, old, PodFacts()),
    )
    assert [condition.observed_generation for condition in decided] == [generation] * 5


def test_initialized_carries_the_generation() -> None:
    pod = of_generation(make_pod(), 3)
    decided = generate_pod_initialized_condition(pod, PodStatus(), (), "Pending", FeatureGates())
    assert decided.observed_generation == 3


def test_the_first_status_of_a_container_counts() -> None:
    pod = make_pod()
    names = [container.name for container in pod.spec.containers or ()]
    twice = (*map(running, names), *map(ended, names))
    for statuses, expected in ((twice, "True"), (twice[::-1], "False")):
        ready = tuple(structs.replace(s, ready=s.state.running is not None) for s in statuses)
        decided = generate_containers_ready_condition(pod, PodStatus(), ready, "Running")
        assert decided.status == expected
