"""Convert the attempts that the runtime lists into the status of a container.

A restart of all containers in place removes the old containers from the runtime, and with them
their exits and restart counts. While the feature gate is on, both are carried over from the
previous status.

Upstream: convertContainerStatus, kubelet_pods.go v1.36.4.
"""

from collections.abc import Sequence
from operator import attrgetter

from podstatus.kube.by_name import all_by_name
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    ContainerUser,
)
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.pods.phase import RESTARTING_ALL_CONTAINERS
from podstatus.pods.resources_in_status import container_resources

CONTAINER_STATUS_UNKNOWN = "ContainerStatusUnknown"
UNSEEN_EXIT_CODE = 137
"""Exit code of a container whose exit was not observed, as if it had been killed."""


def attempts_newest_first(facts: PodFacts) -> dict[str, list[ContainerFacts]]:
    """Return the attempts by container name, newest first."""
    attempts = all_by_name(facts.containers)
    for of_container in attempts.values():
        of_container.sort(key=attrgetter("created_at"), reverse=True)
    return attempts


def convert_container_status(
    container: Container,
    attempts: Sequence[ContainerFacts],
    old: ContainerStatus | None,
    *,
    restarting_all: bool,
    gates: FeatureGates,
) -> ContainerStatus:
    """Return the status: the newest attempt is the state, the one before it the last state."""
    newest, *older = attempts
    if older:
        last_state = _state(older[0], old, restarting_all=restarting_all)
    else:
        last_state = _last_state(newest, old, gates)
    runs = newest.state is ContainerRunState.RUNNING
    return ContainerStatus(
        name=container.name,
        state=_state(newest, old, restarting_all=restarting_all),
        last_state=last_state,
        restart_count=_restart_count(attempts, old, gates),
        image=newest.image,
        image_id=newest.image_ref,
        container_id=newest.id,
        started=old.started if old is not None and runs else None,
        allocated_resources=container.resources.requests,
        resources=container_resources(container, newest, old),
        volume_mounts=None if old is None else old.volume_mounts,
        user=None if newest.user is None else ContainerUser(linux=newest.user),
    )


def _state(
    attempt: ContainerFacts, old: ContainerStatus | None, *, restarting_all: bool
) -> ContainerState:
    if attempt.state is ContainerRunState.RUNNING:
        return ContainerState(running=ContainerStateRunning(started_at=attempt.started_at))
    if attempt.state is ContainerRunState.EXITED:
        return ContainerState(terminated=_terminated_state(attempt))
    if _has_disappeared(attempt, old):
        return ContainerState(
            terminated=ContainerStateTerminated(
                reason=RESTARTING_ALL_CONTAINERS if restarting_all else CONTAINER_STATUS_UNKNOWN,
                message="The container could not be located when the pod was terminated",
                exit_code=UNSEEN_EXIT_CODE,
            )
        )
    return ContainerState(waiting=ContainerStateWaiting())


def _terminated_state(attempt: ContainerFacts) -> ContainerStateTerminated:
    return ContainerStateTerminated(
        exit_code=attempt.exit_code,
        reason=attempt.reason,
        message=attempt.message,
        started_at=attempt.started_at,
        finished_at=attempt.finished_at,
        container_id=attempt.id,
    )


def _has_disappeared(attempt: ContainerFacts, old: ContainerStatus | None) -> bool:
    """Return whether it ran and must have ended; one that never ran may still be started."""
    return (
        attempt.state is ContainerRunState.UNKNOWN
        and old is not None
        and old.state.running is not None
    )


def _restart_count(
    attempts: Sequence[ContainerFacts], old: ContainerStatus | None, gates: FeatureGates
) -> int:
    attempt = attempts[0]
    count = attempt.restart_count
    if count is None:
        count = _restart_count_from_history(attempts, old)
    if old is None:
        return count
    if _has_disappeared(attempt, old):
        return old.restart_count + 1
    if not gates.restart_all_containers_on_container_exits:
        return count
    runs_again = attempt.state is ContainerRunState.RUNNING and old.state.terminated is not None
    return max(count, old.restart_count + 1 if runs_again else old.restart_count)


def _restart_count_from_history(
    attempts: Sequence[ContainerFacts], old: ContainerStatus | None
) -> int:
    """Return the number of restarts, from the listed attempts and the previous status."""
    listed = len(attempts) - 1
    if old is None:
        return listed
    is_another = bool(old.container_id) and old.container_id != attempts[0].id
    return max(listed, old.restart_count + is_another)


def _last_state(
    attempt: ContainerFacts, old: ContainerStatus | None, gates: FeatureGates
) -> ContainerState:
    """Return the last state from the previous status, if the runtime lists a single attempt."""
    if old is None or not gates.restart_all_containers_on_container_exits:
        return ContainerState()
    if old.state.terminated is not None and old.container_id != attempt.id:
        return ContainerState(terminated=old.state.terminated)
    return ContainerState(terminated=old.last_state.terminated)
