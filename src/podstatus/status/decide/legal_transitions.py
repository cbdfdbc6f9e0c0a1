"""Check container state transitions.

A terminated container stays terminated, unless its restart policy or a restart rule allows a
restart.
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
    """Return why the transition from `old` to `new` is illegal, or None if it is legal."""
    if spec.restart_policy == "Always":
        return None
    if gates.restart_all_containers_on_container_exits and all_containers_could_restart(spec):
        return None
    by_name, alive = all_by_name(spec.containers), _non_terminated_names(new.container_statuses)
    for status in old.container_statuses or ():
        containers = by_name.get(status.name, ())
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
    by_name, alive = all_by_name(containers), _non_terminated_names(new.init_container_statuses)
    for index, status in enumerate(statuses):
        container = get_container_by_index(containers, statuses, index)
        if container is None:
            return f"found mismatch between pod spec and status, container: {status.name}"
        if is_restartable_init_container(container):
            continue
        if status.name in alive and _is_permanently_terminated(
            status, by_name[status.name], spec, gates
        ):
            return (
                f"terminated init container {status.name} attempted illegal transition "
                "to non-terminated state"
            )
    return None


def get_container_by_index(
    containers: Sequence[Container], statuses: ContainerStatuses, index: int
) -> Container | None:
    """Return the container at this index of the spec if the status there has its name."""
    if not 0 <= index < min(len(containers), len(statuses)):
        return None
    return containers[index] if containers[index].name == statuses[index].name else None


def _is_permanently_terminated(
    status: ContainerStatus, containers: Sequence[Container], spec: PodSpec, gates: FeatureGates
) -> bool:
    """Whether the container has terminated and may not restart.

    `containers`: the containers of the spec with its name.
    """
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
    """Return the names of the containers that have not terminated."""
    return {status.name for status in statuses or () if status.state.terminated is None}
