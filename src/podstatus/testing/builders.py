"""Builders of pods and statuses, for tests and examples."""

from collections.abc import Sequence
from typing import TypedDict, Unpack

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.pod import CONFIG_MIRROR, CONFIG_SOURCE, Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodCondition,
    PodStatus,
)
from podstatus.kube.scalars.time import Time


class PodMetadata(TypedDict, total=False):
    """Metadata of a pod that few tests need."""

    annotations: dict[str, str] | None
    generation: int
    deleted_at: str | None
    """Its deletionTimestamp."""


def make_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    uid: str = "",
    containers: Sequence[str] = ("app",),
    init_containers: Sequence[str] = (),
    sidecars: Sequence[str] = (),
    restart_policy: str = "Always",
    status: PodStatus | None = None,
    **metadata: Unpack[PodMetadata],
) -> Pod:
    """Return a pod with these containers; the default UID is derived from the name."""
    deleted_at = metadata.get("deleted_at")
    return Pod(
        api_version="v1",
        kind="Pod",
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid or f"uid-{name}",
            annotations=metadata.get("annotations"),
            generation=metadata.get("generation", 0),
            deletion_timestamp=Time.parse(deleted_at) if deleted_at else None,
        ),
        spec=PodSpec(
            containers=_containers(containers),
            init_containers=_containers(init_containers) + _containers(sidecars, "Always") or None,
            restart_policy=restart_policy,
        ),
        status=status or PodStatus(),
    )


def _containers(names: Sequence[str], restart_policy: str | None = None) -> tuple[Container, ...]:
    return tuple(Container(name=n, image=f"{n}:1", restart_policy=restart_policy) for n in names)


def make_static_pod(name: str = "static", *, mirror: bool = False, uid: str = "") -> Pod:
    """Return a static pod from a manifest file, or with `mirror` its mirror pod."""
    annotations = {CONFIG_SOURCE: "file"}
    if mirror:
        annotations[CONFIG_MIRROR] = "hash"
    uid = uid or (f"mirror-{name}" if mirror else "")
    return make_pod(name, namespace="kube-system", uid=uid, annotations=annotations)


def waiting(name: str, reason: str = "ContainerCreating") -> ContainerStatus:
    """Return the status of a waiting container."""
    state = ContainerState(waiting=ContainerStateWaiting(reason=reason))
    return ContainerStatus(name=name, image=f"{name}:1", state=state)


def running(
    name: str, *, ready: bool = True, since: str = "2024-01-01T00:00:00Z"
) -> ContainerStatus:
    """Return the status of a running container."""
    return ContainerStatus(
        name=name,
        image=f"{name}:1",
        container_id=f"fake://{name}",
        ready=ready,
        started=True,
        state=ContainerState(running=ContainerStateRunning(started_at=Time.parse(since))),
    )


def ended(name: str, exit_code: int = 0, *, message: str = "") -> ContainerStatus:
    """Return the status of a terminated container."""
    terminated = ContainerStateTerminated(
        exit_code=exit_code,
        reason="Error" if exit_code else "Completed",
        message=message,
        started_at=Time.parse("2024-01-01T00:00:00Z"),
        finished_at=Time.parse("2024-01-01T00:01:00Z"),
    )
    return ContainerStatus(
        name=name,
        image=f"{name}:1",
        container_id=f"fake://{name}",
        state=ContainerState(terminated=terminated),
    )


def make_status(phase: str, *containers: ContainerStatus, **conditions: str) -> PodStatus:
    """Return a pod status: `make_status("Running", Ready="True")`."""
    return PodStatus(
        phase=phase,
        conditions=tuple(PodCondition(type=t, status=s) for t, s in conditions.items()) or None,
        container_statuses=containers or None,
    )
