"""Pods with probes, and the statuses that are told of them."""

from typing import Any

from msgspec import structs

from podstatus.kube.objects.containers import HTTPGetAction, Probe
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    PodStatus,
)
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.testing.builders import make_pod

HTTP = HTTPGetAction(port=8080)
START = Time.parse("2100-01-01T00:00:00Z")
"""Of the fake clock."""


def a_probe(**numbers: int) -> Probe:
    """An HTTP probe."""
    fields: dict[str, Any] = {**numbers}
    return Probe(http_get=HTTP, **fields)


def probed_pod(name: str = "p", *, sidecars: tuple[str, ...] = (), **probes: Probe) -> Pod:
    """A pod whose containers, sidecars too, have these probes: `readiness=a_probe()`."""
    pod = make_pod(name, namespace="ns", uid=name, sidecars=sidecars)
    fields: dict[str, Any] = {f"{kind}_probe": probe for kind, probe in probes.items()}
    spec = structs.replace(
        pod.spec,
        containers=tuple(structs.replace(c, **fields) for c in pod.spec.containers or ()),
        init_containers=tuple(structs.replace(c, **fields) for c in pod.spec.init_containers or ()),
    )
    return structs.replace(pod, spec=spec)


def shown(
    pod: Pod,
    *,
    id: str = "c1",
    runs: bool = True,
    started: bool = True,
    phase: str = "Running",
    since: Time = START,
) -> PodStatus:
    """The status of a pod all of whose containers are so; the ID is followed by the name."""
    running = ContainerStateRunning(started_at=since if runs else UNSET_TIME)
    state = ContainerState(running=running) if runs else ContainerState()

    def status(name: str) -> ContainerStatus:
        return ContainerStatus(name=name, container_id=f"{id}-{name}", state=state, started=started)

    return PodStatus(
        phase=phase,
        pod_ip="10.0.0.1",
        container_statuses=tuple(status(c.name) for c in pod.spec.containers or ()),
        init_container_statuses=tuple(status(c.name) for c in pod.spec.init_containers or ()),
    )
