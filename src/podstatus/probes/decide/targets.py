"""Select the probes of a pod that should run, from its spec and its current status.

Upstream: AddPod, pkg/kubelet/prober/prober_manager.go, and doProbe, worker.go v1.36.4.
"""

from collections.abc import Iterator

import msgspec

from podstatus.kube.objects.containers import Container, Probe
from podstatus.kube.objects.pod import Pod, PodUID, is_terminal_phase
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.time import Time
from podstatus.probes.decide.thresholds import ProbeType


class ProbeKey(msgspec.Struct, frozen=True, kw_only=True):
    """One probe of one container ID; a restarted container has a new key."""

    uid: PodUID
    container: str
    container_id: str
    kind: ProbeType


class ProbeTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A probe to run, with all inputs of its check."""

    key: ProbeKey
    pod: Pod
    container: Container
    probe: Probe
    pod_ip: str
    started_at: Time
    """Start time of the container."""


def find_targets(pod: Pod, status: PodStatus, *, terminating: bool) -> dict[ProbeKey, ProbeTarget]:
    """The probes to run: those of running containers; all but startup only once it has started.

    In a terminating pod only readiness probes run: it may receive traffic until it is not ready.
    Upstream intends the same, but cancels those checks.
    """
    if is_terminal_phase(status.phase):
        return {}
    is_terminating = terminating or pod.metadata.deletion_timestamp is not None
    targets = (
        _target(pod, status, container, container_status, kind)
        for container, container_status in _running(pod, status)
        for kind in _kinds(container_status, terminating=is_terminating)
    )
    return {target.key: target for target in targets if target is not None}


def find_started_probes(pod: Pod, status: PodStatus) -> list[ProbeKey]:
    """Startup probes that need not run, since their containers have started."""
    return [
        _key(pod, container_status, ProbeType.STARTUP)
        for container, container_status in _running(pod, status)
        if container_status.started and container.startup_probe is not None
    ]


def _running(pod: Pod, status: PodStatus) -> Iterator[tuple[Container, ContainerStatus]]:
    """Running containers that have probes, with their statuses."""
    sidecars = (c for c in pod.spec.init_containers or () if is_restartable_init_container(c))
    for containers, statuses in (
        (pod.spec.containers or (), status.container_statuses),
        (sidecars, status.init_container_statuses),
    ):
        probed = {c.name: c for c in containers if any(_probe(c, kind) for kind in ProbeType)}
        for container_status in (statuses or ()) if probed else ():
            if (
                container_status.name in probed
                and container_status.container_id
                and container_status.state.running is not None
            ):
                yield probed[container_status.name], container_status


def _kinds(status: ContainerStatus, *, terminating: bool) -> tuple[ProbeType, ...]:
    if not status.started:
        return () if terminating else (ProbeType.STARTUP,)
    return (ProbeType.READINESS,) if terminating else (ProbeType.READINESS, ProbeType.LIVENESS)


def _target(
    pod: Pod,
    status: PodStatus,
    container: Container,
    container_status: ContainerStatus,
    kind: ProbeType,
) -> ProbeTarget | None:
    probe = _probe(container, kind)
    if probe is None or container_status.state.running is None:
        return None
    return ProbeTarget(
        key=_key(pod, container_status, kind),
        pod=pod,
        container=container,
        probe=probe,
        pod_ip=status.pod_ip,
        started_at=container_status.state.running.started_at,
    )


def _key(pod: Pod, container_status: ContainerStatus, kind: ProbeType) -> ProbeKey:
    return ProbeKey(
        uid=pod.uid,
        container=container_status.name,
        container_id=container_status.container_id,
        kind=kind,
    )


def _probe(container: Container, kind: ProbeType) -> Probe | None:
    match kind:
        case ProbeType.STARTUP:
            return container.startup_probe
        case ProbeType.READINESS:
            return container.readiness_probe
        case ProbeType.LIVENESS:
            return container.liveness_probe
