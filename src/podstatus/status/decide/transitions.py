"""Which changes of container state a node may report.

A container that has ended stays ended, unless something in the pod lets it start again.
Upstream: checkContainerStateTransition, status_manager.go v1.36.4.
"""

from collections.abc import Sequence

from podstatus.kube.by_name import all_by_name
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.kube.restart_policy import (
    all_containers_could_restart,
    container_should_restart,
    is_restartable_init_container,
)

ContainerStatuses = Sequence[ContainerStatus]


def check_container_state_transition(
    old: PodStatus, new: PodStatus, spec: PodSpec, gates: FeatureGates
) -> str | None:
    """What is illegal about going from the old status to the new one, or None."""
    if spec.restart_policy == "Always":
        return None
    if gates.restart_all_containers_on_container_exits and all_containers_could_restart(spec):
        return None
    known, alive = all_by_name(spec.containers), _non_terminated_names(new.container_statuses)
    for status in old.container_statuses or ():
        containers = known.get(status.name, ())
        if status.name in alive and _is_permanently_terminated(status, containers, spec, gates):
            return (
                f"terminated container {status.name} attempted illegal transition "
                "to non-terminated state"
            )
    return _check_init_containers(old, new, spec, gates)


def _check_init_containers(
    old: PodStatus, new: PodStatus, spec: PodSpec, gates: FeatureGates
) -> str | None:
    containers = spec.init_containers or ()
    statuses = old.init_container_statuses or ()
    known, alive = all_by_name(containers), _non_terminated_names(new.init_container_statuses)
    for index, status in enumerate(statuses):
        container = get_container_by_index(containers, statuses, index)
        if container is None:
            return f"found mismatch between pod spec and status, container: {status.name}"
        if is_restartable_init_container(container):
            continue
        if status.name in alive and _is_permanently_terminated(
            status, known[status.name], spec, gates
        ):
            return (
                f"terminated init container {status.name} attempted illegal transition "
                "to non-terminated state"
            )
    return None


def get_container_by_index(
    containers: Sequence[Container], statuses: ContainerStatuses, index: int
) -> Container | None:
    """The container at this place of the spec, if the status there is the status of it."""
    if not 0 <= index < min(len(containers), len(statuses)):
        return None
    return containers[index] if containers[index].name == statuses[index].name else None


def _is_permanently_terminated(
    status: ContainerStatus, containers: Sequence[Container], spec: PodSpec, gates: FeatureGates
) -> bool:
    """Whether it has ended for good; `containers` are those of its name."""
    terminated = status.state.terminated
    if terminated is None:
        return False
    if terminated.exit_code != 0 and spec.restart_policy == "OnFailure":
        return False
    if not gates.container_restart_rules:
        return True
    return not any(
        container_should_restart(container, spec, terminated.exit_code, gates)
        for container in containers
    )


def _non_terminated_names(statuses: ContainerStatuses | None) -> set[str]:
    """The names of containers that a status does not show ended."""
    return {status.name for status in statuses or () if status.state.terminated is None}
