"""Generate the pod conditions that the kubelet owns.

Upstream: pkg/kubelet/status/generate.go v1.36.4.
"""

from collections.abc import Sequence

from msgspec import structs

from podstatus.kube.by_name import first_by_name
from podstatus.kube.conditions import (
    ALL_CONTAINERS_RESTARTING,
    CONTAINERS_READY,
    INITIALIZED,
    POD_READY_TO_START_CONTAINERS,
    READY,
    Conditions,
    find_condition,
)
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import ContainerStatus, PodCondition, PodStatus
from podstatus.kube.objects.runtime_facts import (
    ContainerRunState,
    NetworkMode,
    PodFacts,
    SandboxState,
)
from podstatus.kube.restart_policy import (
    RESTART_ALL_CONTAINERS,
    find_matching_container_restart_rule,
    is_restartable_init_container,
)
from podstatus.kube.scalars.go_text import go_quoted

_TERMINAL_REASONS = {"Failed": "PodFailed", "Succeeded": "PodCompleted"}

ContainerStatuses = Sequence[ContainerStatus]


def condition_observed_generation(generation: int, old_status: PodStatus | None) -> int:
    """Return the `observedGeneration` of a condition generated for this pod.

    Upstream: CalculatePodConditionObservedGeneration, with its gate locked on.
    """
    return 0 if old_status is None else generation


def generate_containers_ready_condition(
    pod: Pod, old_status: PodStatus | None, statuses: ContainerStatuses | None, phase: str
) -> PodCondition:
    """ContainersReady: every regular container and sidecar of the spec is ready."""
    condition = PodCondition(
        type=CONTAINERS_READY,
        status="True",
        observed_generation=condition_observed_generation(pod.metadata.generation, old_status),
    )
    if statuses is None:
        return structs.replace(condition, status="False", reason="UnknownContainerStatuses")
    sidecars = filter(is_restartable_init_container, pod.spec.init_containers or ())
    unknown, unready = [], []
    by_name = first_by_name(statuses)
    for container in (*sidecars, *(pod.spec.containers or ())):
        status = by_name.get(container.name)
        if status is None:
            unknown.append(container.name)
        elif not status.ready:
            unready.append(container.name)
    if phase == "Failed" or (phase == "Succeeded" and not unknown):
        return generate_containers_ready_condition_for_terminal_phase(pod, old_status, phase)
    message = _not_ready_message(unknown, unready, "unready")
    if message:
        return structs.replace(
            condition, status="False", reason="ContainersNotReady", message=message
        )
    return condition


def generate_pod_ready_condition(
    pod: Pod,
    old_status: PodStatus | None,
    conditions: Conditions | None,
    statuses: ContainerStatuses | None,
    phase: str,
) -> PodCondition:
    """Ready: the containers are ready and the condition of every readiness gate is True."""
    ready = structs.replace(
        generate_containers_ready_condition(pod, old_status, statuses, phase), type=READY
    )
    if ready.status != "True":
        return ready
    if not pod.spec.readiness_gates:
        return ready
    messages = []
    by_type = {condition.type: condition for condition in reversed(conditions or ())}
    for gate in pod.spec.readiness_gates:
        condition = by_type.get(gate.condition_type)
        name = go_quoted(gate.condition_type)
        if condition is None:
            messages.append(f"corresponding condition of pod readiness gate {name} does not exist.")
        elif condition.status != "True":
            messages.append(
                f'the status of pod readiness gate {name} is not "True", but {condition.status}'
            )
    if messages:
        return structs.replace(
            ready, status="False", reason="ReadinessGatesNotReady", message=", ".join(messages)
        )
    return ready


def generate_pod_initialized_condition(
    pod: Pod,
    old_status: PodStatus,
    statuses: ContainerStatuses | None,
    phase: str,
    gates: FeatureGates,
) -> PodCondition:
    """Initialized: all init containers have succeeded and all sidecars have started.

    It stays True when a sidecar or, in place, the whole pod restarts later.
    """
    condition = PodCondition(
        type=INITIALIZED,
        status="True",
        observed_generation=condition_observed_generation(pod.metadata.generation, old_status),
    )
    if statuses is None and pod.spec.init_containers:
        return structs.replace(condition, status="False", reason="UnknownContainerStatuses")
    unknown, incomplete = _uninitialized_containers(pod.spec, statuses)
    if phase == "Succeeded" and not unknown:
        return structs.replace(condition, reason="PodCompleted")
    message = _not_ready_message(unknown, incomplete, "incomplete")
    if not message or _was_initialized(pod, old_status, statuses, gates):
        return condition
    return structs.replace(
        condition, status="False", reason="ContainersNotInitialized", message=message
    )


def _uninitialized_containers(
    spec: PodSpec, statuses: ContainerStatuses | None
) -> tuple[list[str], list[str]]:
    """Return the names of init containers without a status, and of incomplete ones."""
    if not spec.init_containers:
        return [], []
    unknown, incomplete = [], []
    by_name = first_by_name(statuses)
    for container in spec.init_containers:
        status = by_name.get(container.name)
        if status is None:
            unknown.append(container.name)
        elif not _is_initialized(container, status):
            incomplete.append(container.name)
    return unknown, incomplete


def _was_initialized(
    pod: Pod, old_status: PodStatus, statuses: ContainerStatuses | None, gates: FeatureGates
) -> bool:
    """Whether the pod was initialized before, so a sidecar or all its containers restart."""
    if has_any_regular_container_started(pod.spec, statuses):
        return True
    return gates.restart_all_containers_on_container_exits and _has_true_condition(
        old_status, INITIALIZED
    )


def generate_pod_ready_to_start_containers_condition(
    pod: Pod, old_status: PodStatus | None, facts: PodFacts
) -> PodCondition:
    """PodReadyToStartContainers: the pod has exactly one usable sandbox."""
    return PodCondition(
        type=POD_READY_TO_START_CONTAINERS,
        status="True" if has_usable_sandbox(pod, facts) else "False",
        observed_generation=condition_observed_generation(pod.metadata.generation, old_status),
    )


def generate_all_containers_restarting_condition(
    pod: Pod, facts: PodFacts, old_status: PodStatus | None, phase: str
) -> PodCondition:
    """AllContainersRestarting: a restart rule matched and old containers still exist."""
    condition = PodCondition(type=ALL_CONTAINERS_RESTARTING, status="False")
    if phase in _TERMINAL_REASONS:
        return structs.replace(condition, reason=_TERMINAL_REASONS[phase])
    in_runtime = {container.name for container in facts.containers}
    names = {c.name for c in (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))}
    if names.isdisjoint(in_runtime) or not should_all_containers_restart(pod, facts, old_status):
        return condition
    return structs.replace(
        condition,
        status="True",
        reason="RestartAllContainersStarted",
        message="container exited with restart policy rule",
    )


def should_all_containers_restart(pod: Pod, facts: PodFacts, old_status: PodStatus | None) -> bool:
    """Whether all containers are restarting, or an exit matched a RestartAllContainers rule.

    The runtime's state decides: the API status of a container that has not exited in the
    runtime is ignored.
    """
    if old_status is not None and _has_true_condition(old_status, ALL_CONTAINERS_RESTARTING):
        return True
    by_name = {container.name: container for container in reversed(facts.containers)}
    old = old_status or PodStatus()
    old_statuses = {
        status.name: status
        for status in (*(old.init_container_statuses or ()), *(old.container_statuses or ()))
    }
    for container in (*(pod.spec.init_containers or ()), *(pod.spec.containers or ())):
        fact = by_name.get(container.name)
        if fact is None or fact.state is not ContainerRunState.EXITED:
            continue
        exit_codes = [fact.exit_code]
        status = old_statuses.get(container.name)
        if status is not None and status.state.terminated is not None:
            exit_codes.append(status.state.terminated.exit_code)
        if any(_restarts_all(container, code) for code in exit_codes):
            return True
    return False


def generate_containers_ready_condition_for_terminal_phase(
    pod: Pod, old_status: PodStatus | None, phase: str
) -> PodCondition:
    """ContainersReady of a pod in a terminal phase: False."""
    return PodCondition(
        type=CONTAINERS_READY,
        status="False",
        reason=_TERMINAL_REASONS.get(phase, ""),
        observed_generation=condition_observed_generation(pod.metadata.generation, old_status),
    )


def generate_pod_ready_condition_for_terminal_phase(
    pod: Pod, old_status: PodStatus | None, phase: str
) -> PodCondition:
    """Ready of a pod in a terminal phase: False."""
    return structs.replace(
        generate_containers_ready_condition_for_terminal_phase(pod, old_status, phase), type=READY
    )


def need_to_reconcile_pod_readiness(pod: Pod) -> bool:
    """Whether a readiness gate's condition changed since the Ready condition was generated."""
    if not pod.spec.readiness_gates:
        return False
    status = pod.status
    current = find_condition(status.conditions, READY)
    if current is None:
        return False
    expected = generate_pod_ready_condition(
        pod, status, status.conditions, status.container_statuses, status.phase
    )
    return (current.status, current.message) != (expected.status, expected.message)


def has_any_regular_container_started(spec: PodSpec, statuses: ContainerStatuses | None) -> bool:
    """Whether any regular container is running or has terminated."""
    names = {container.name for container in spec.containers or ()}
    return any(
        status.name in names
        and (status.state.running is not None or status.state.terminated is not None)
        for status in statuses or ()
    )


def has_usable_sandbox(pod: Pod, facts: PodFacts) -> bool:
    """Whether only the newest sandbox is ready, in the right network, with an IP address.

    Upstream: PodSandboxChanged, kuberuntime/util/util.go v1.36.4.
    """
    ready = [s for s in facts.sandboxes if s.state is SandboxState.READY]
    if len(ready) != 1 or ready[0] is not facts.sandboxes[0]:
        return False
    newest = ready[0]
    if newest.network is not (NetworkMode.NODE if pod.spec.host_network else NetworkMode.POD):
        return False
    return pod.spec.host_network or newest.ip != ""


def _is_initialized(container: Container, status: ContainerStatus) -> bool:
    return bool(status.started) if is_restartable_init_container(container) else status.ready


def _has_true_condition(status: PodStatus, condition_type: str) -> bool:
    return any(c.type == condition_type and c.status == "True" for c in status.conditions or ())


def _not_ready_message(unknown: Sequence[str], lacking: Sequence[str], adjective: str) -> str:
    parts = []
    if unknown:
        parts.append(f"containers with unknown status: [{' '.join(unknown)}]")
    if lacking:
        parts.append(f"containers with {adjective} status: [{' '.join(lacking)}]")
    return ", ".join(parts)


def _restarts_all(container: Container, exit_code: int) -> bool:
    rule = find_matching_container_restart_rule(container, exit_code)
    return rule is not None and rule.action == RESTART_ALL_CONTAINERS
