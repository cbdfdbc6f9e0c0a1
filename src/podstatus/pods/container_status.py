"""The statuses of a pod's containers, from runtime facts and the previous status.

If the runtime has no record of a container, the previous status says whether it ever ran. A
container that has to be started and could not be is waiting, with the reason, and its exit as its
last state.

Upstream: convertToAPIContainerStatuses and resolveRecursiveReadOnly, kubelet_pods.go v1.36.4.
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter

import msgspec
from msgspec import structs

from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Container, VolumeMount
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    VolumeMountStatus,
)
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.kube.restart_policy import container_should_restart, is_restartable_init_container
from podstatus.pods.container_attempts import (
    CONTAINER_STATUS_UNKNOWN,
    UNSEEN_EXIT_CODE,
    convert_container_status,
)
from podstatus.pods.phase import RESTARTING_ALL_CONTAINERS

ENABLED = "Enabled"
DISABLED = "Disabled"


def volume_mount_statuses(
    container: Container, *, recursive_read_only: bool
) -> tuple[VolumeMountStatus, ...] | None:
    """Return a status for each mount.

    `recursive_read_only`: whether the runtime supports recursive read-only mounts.
    """
    statuses = [
        VolumeMountStatus(
            name=mount.name,
            mount_path=mount.mount_path,
            read_only=mount.read_only,
            recursive_read_only=_recursive_read_only_mode(mount, possible=recursive_read_only),
        )
        for mount in container.volume_mounts or ()
    ]
    return tuple(statuses) or None


def _recursive_read_only_mode(mount: VolumeMount, *, possible: bool) -> str | None:
    """Return the mode of a read-only mount; an unsupported mode counts as not requested."""
    if not mount.read_only:
        return None
    requested = mount.recursive_read_only in (ENABLED, "IfPossible")
    private = mount.mount_propagation in (None, "None")
    return ENABLED if possible and requested and private else DISABLED


CONTAINER_CREATING = "ContainerCreating"
POD_INITIALIZING = "PodInitializing"

_REMOVED_MESSAGE = "The container is removed because RestartAllContainers in place"

Containers = Sequence[Container]
ContainerStatuses = tuple[ContainerStatus, ...]


class StartFailure(Wire, frozen=True, kw_only=True):
    """Why a container could not be started, or not yet: `ErrImagePull`, `CrashLoopBackOff`.

    The container is then waiting, and its exit moves to the last state. Report an exit once without
    a start failure, otherwise it is not counted as a restart.
    """

    reason: str
    message: str = ""


class ContainerStatusContext(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs shared by all containers of a pod."""

    pod: Pod
    facts: PodFacts
    attempts: Mapping[str, Sequence[ContainerFacts]]
    """Attempts by container name, newest first."""
    listed: Mapping[str, ContainerFacts]
    """By container name, the attempt that the runtime lists first."""
    past_init: bool
    """Whether a regular container was created, so all init containers have succeeded."""
    start_failures: Mapping[str, StartFailure]
    restarting_all: bool
    """Whether all containers of the pod are being restarted in place."""
    gates: FeatureGates


def container_statuses(
    context: ContainerStatusContext, containers: Containers | None, old: ContainerStatuses | None
) -> ContainerStatuses:
    """Return the statuses of regular or ephemeral containers, sorted by name."""
    old_by_name = _by_name(old)
    statuses = {
        c.name: _with_start_failure(
            context, c, _container_status(context, c, old_by_name.get(c.name))
        )
        for c in containers or ()
    }
    return tuple(sorted(statuses.values(), key=attrgetter("name")))


def init_container_statuses(
    context: ContainerStatusContext, containers: Containers | None, old: ContainerStatuses | None
) -> ContainerStatuses:
    """Return the statuses of init containers and sidecars, in the order of the spec."""
    old_by_name = _by_name(old)
    statuses = {
        c.name: _init_status(context, c, _container_status(context, c, old_by_name.get(c.name)))
        for c in containers or ()
    }
    return tuple(statuses[c.name] for c in containers or ())


def _by_name(statuses: ContainerStatuses | None) -> dict[str, ContainerStatus]:
    return {status.name: status for status in statuses or ()}


def _container_status(
    context: ContainerStatusContext, container: Container, old: ContainerStatus | None
) -> ContainerStatus:
    attempts = context.attempts.get(container.name)
    if attempts:
        return convert_container_status(
            container, attempts, old, restarting_all=context.restarting_all, gates=context.gates
        )
    return _status_without_runtime_record(context, container, old)


def _status_without_runtime_record(
    context: ContainerStatusContext, container: Container, old: ContainerStatus | None
) -> ContainerStatus:
    """Return the status of a container that the runtime does not list."""
    if old is None:
        return _default_waiting_status(context, container)
    if old.state.terminated is not None:
        status = old
    else:
        status = structs.replace(
            _default_waiting_status(context, container),
            restart_count=old.restart_count,
            last_state=old.last_state,
        )
    if context.restarting_all and old.state.waiting is None:
        return _removed_for_restart(status)
    if status is old or old.state.running is None or status.last_state.terminated is not None:
        return status
    return _disappeared(status, restarts=context.pod.metadata.deletion_timestamp is None)


def _default_waiting_status(
    context: ContainerStatusContext, container: Container
) -> ContainerStatus:
    reason = POD_INITIALIZING if context.pod.spec.init_containers else CONTAINER_CREATING
    return ContainerStatus(
        name=container.name,
        image=container.image,
        state=_waiting_state(reason),
        volume_mounts=volume_mount_statuses(
            container, recursive_read_only=context.facts.recursive_read_only
        ),
    )


def _removed_for_restart(status: ContainerStatus) -> ContainerStatus:
    """The container was removed to restart the pod in place, and waits for its next start."""
    waiting = ContainerStateWaiting(reason=RESTARTING_ALL_CONTAINERS, message=_REMOVED_MESSAGE)
    exit_ = ContainerStateTerminated(
        reason=RESTARTING_ALL_CONTAINERS, message=_REMOVED_MESSAGE, exit_code=UNSEEN_EXIT_CODE
    )
    return structs.replace(
        status,
        state=structs.replace(status.state, waiting=waiting, terminated=None),
        last_state=structs.replace(status.last_state, terminated=exit_),
        restart_count=status.restart_count + 1,
    )


def _disappeared(status: ContainerStatus, *, restarts: bool) -> ContainerStatus:
    """The container ran and is gone. Its recorded exit keeps the pod from becoming Pending."""
    exit_ = ContainerStateTerminated(
        reason=CONTAINER_STATUS_UNKNOWN,
        message="The container could not be located when the pod was deleted.  "
        "The container used to be Running",
        exit_code=UNSEEN_EXIT_CODE,
    )
    return structs.replace(
        status,
        last_state=structs.replace(status.last_state, terminated=exit_),
        restart_count=status.restart_count + 1 if restarts else status.restart_count,
    )


def _init_status(
    context: ContainerStatusContext, container: Container, status: ContainerStatus
) -> ContainerStatus:
    """An init container that has succeeded is not restarted, whatever its restart policy."""
    attempt = context.listed.get(container.name)
    if attempt is not None:
        done = attempt.state is ContainerRunState.EXITED and attempt.exit_code == 0
        return status if done else _with_start_failure(context, container, status)
    waits = status.state.waiting is not None
    if waits and not is_restartable_init_container(container) and context.past_init:
        return structs.replace(status, state=_assumed_completed())
    return _with_start_failure(context, container, status)


def _assumed_completed() -> ContainerState:
    return ContainerState(
        terminated=ContainerStateTerminated(
            reason="Completed",
            message="Unable to get init container status from container runtime and pod has been "
            "initialized, treat it as exited normally",
        )
    )


def _with_start_failure(
    context: ContainerStatusContext, container: Container, status: ContainerStatus
) -> ContainerStatus:
    """Make the status waiting if the next start of the container is known to fail."""
    failure = context.start_failures.get(container.name)
    if failure is None or not _should_container_be_restarted(context, container):
        return status
    ended = status.state.terminated is not None
    return structs.replace(
        status,
        state=_waiting_state(failure.reason, failure.message),
        last_state=status.state if ended else status.last_state,
    )


def _should_container_be_restarted(context: ContainerStatusContext, container: Container) -> bool:
    """Upstream: ShouldContainerBeRestarted, pkg/kubelet/container/helpers.go v1.36.4."""
    if context.pod.metadata.deletion_timestamp is not None:
        return False
    attempt = context.listed.get(container.name)
    if attempt is None or attempt.state in (ContainerRunState.CREATED, ContainerRunState.UNKNOWN):
        return True
    if attempt.state is ContainerRunState.RUNNING:
        return False
    spec = context.pod.spec
    if context.gates.container_restart_rules:
        return container_should_restart(container, spec, attempt.exit_code, context.gates)
    return spec.restart_policy != "Never" and not (
        spec.restart_policy == "OnFailure" and attempt.exit_code == 0
    )


def _waiting_state(reason: str, message: str = "") -> ContainerState:
    return ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))
