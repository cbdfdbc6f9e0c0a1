"""Statuses of CRI as facts about pods.

Upstream: toKubeContainerStatus, kuberuntime/kuberuntime_container.go; determinePodSandboxIPs,
kuberuntime_sandbox.go; v1.36.4. Differences: a container never ends before it started, although
containerd may say so when it ends at once; the start of one that did not start is unset, not 1970.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import structs

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.pod_status import LinuxContainerUser
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    NetworkMode,
    PodFacts,
    ResourceFacts,
    SandboxFacts,
    SandboxState,
)
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.runtime.cpu_and_memory_limits import (
    bytes_to_memory_limit,
    quota_to_cpu_limit,
    shares_to_cpu_request,
)
from podstatus.runtime.cri.api import containers as c
from podstatus.runtime.cri.api import sandboxes as s
from podstatus.runtime.cri.api.resources import CriLinuxContainerResources
from podstatus.runtime.cri.api.security import NAMESPACE_NODE, CriNamespaceOption
from podstatus.runtime.cri.model import labels
from podstatus.runtime.port import RuntimePod

_STATES = {
    c.CONTAINER_CREATED: ContainerRunState.CREATED,
    c.CONTAINER_RUNNING: ContainerRunState.RUNNING,
    c.CONTAINER_EXITED: ContainerRunState.EXITED,
}


class SandboxInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A sandbox with its status."""

    listed: s.CriPodSandbox
    status: s.CriPodSandboxStatus


class ContainerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A container with its status and its termination message."""

    listed: c.CriContainer
    status: c.CriContainerStatus
    message: str = ""


def runtime_pod(
    runtime: str, sandboxes: Sequence[SandboxInfo], containers: Sequence[ContainerInfo]
) -> RuntimePod:
    """Return what is listed for a pod with at least one sandbox or container."""
    newest = sorted(sandboxes, key=_sandbox_order)
    attempts = sorted(containers, key=_attempt_order)
    owner = (newest[0].listed if newest else attempts[0].listed).labels
    active = newest[0].listed.id if newest else ""
    facts = PodFacts(
        sandboxes=tuple(_sandbox_facts(sandbox) for sandbox in newest),
        containers=tuple(
            container_facts(runtime, attempt, active=attempt.listed.pod_sandbox_id == active)
            for attempt in attempts
        ),
        ips=sandbox_ips(newest[0].status) if newest else (),
    )
    return RuntimePod(
        uid=PodUID(owner.get(labels.POD_UID, "")),
        namespace=owner.get(labels.POD_NAMESPACE, ""),
        name=owner.get(labels.POD_NAME, ""),
        facts=facts,
    )


def container_facts(runtime: str, attempt: ContainerInfo, *, active: bool) -> ContainerFacts:
    """Return the facts of an attempt."""
    status = attempt.status
    state = _STATES.get(status.state, ContainerRunState.UNKNOWN)
    has_ended = state is ContainerRunState.EXITED
    started = 0 if state is ContainerRunState.CREATED else status.started_at
    parts = (status.message, attempt.message) if has_ended else ()
    return ContainerFacts(
        name=attempt.listed.labels.get(labels.CONTAINER_NAME, ""),
        state=state,
        id=f"{runtime}://{status.id}",
        created_at=_time(status.created_at),
        started_at=_time(started),
        finished_at=_time(max(status.finished_at, started)) if has_ended else UNSET_TIME,
        exit_code=status.exit_code if has_ended else 0,
        reason=status.reason if has_ended else "",
        message=": ".join(part for part in parts if part),
        image=status.image.image if status.image is not None else "",
        image_ref=status.image_ref,
        restart_count=_restart_count(status.annotations),
        resources=_resources(status),
        user=_user(status),
        active=active,
    )


def is_host_network(status: s.CriPodSandboxStatus) -> bool:
    """Return whether a sandbox uses the network of the host."""
    return _namespaces(status).network == NAMESPACE_NODE


def _sandbox_facts(sandbox: SandboxInfo) -> SandboxFacts:
    metadata = sandbox.listed.metadata or s.CriPodSandboxMetadata()
    is_ready = sandbox.status.state == s.SANDBOX_READY
    host = is_host_network(sandbox.status)
    network = sandbox.status.network
    return SandboxFacts(
        id=sandbox.listed.id,
        state=SandboxState.READY if is_ready else SandboxState.NOT_READY,
        attempt=metadata.attempt,
        network=NetworkMode.NODE if host else NetworkMode.POD,
        ip=None if network is None else network.ip,
    )


def _namespaces(status: s.CriPodSandboxStatus) -> CriNamespaceOption:
    namespaces = status.linux.namespaces if status.linux is not None else None
    options = namespaces.options if namespaces is not None else None
    return options or CriNamespaceOption()


def sandbox_ips(status: s.CriPodSandboxStatus) -> tuple[str, ...]:
    """Return the addresses of a ready sandbox; none if it is on the network of the host."""
    if status.network is None or status.state != s.SANDBOX_READY:
        return ()
    ips = (status.network.ip, *(ip.ip for ip in status.network.additional_ips))
    return tuple(ip for ip in ips if ip)


def _resources(status: c.CriContainerStatus) -> ResourceFacts | None:
    """Return the limits in force; the memory request is the one that was asked for.

    Upstream: toKubeContainerResources, kuberuntime_container_linux.go v1.36.4.
    """
    linux = status.resources.linux if status.resources is not None else None
    if linux is None:
        return None
    request = status.annotations.get(labels.MEMORY_REQUEST)
    facts = _enforced(linux)
    return facts if request is None else structs.replace(facts, memory_request=Quantity(request))


def _enforced(linux: CriLinuxContainerResources) -> ResourceFacts:
    has_quota = linux.cpu_quota > 0 and linux.cpu_period > 0
    return ResourceFacts(
        cpu_request=shares_to_cpu_request(linux.cpu_shares) if linux.cpu_shares > 0 else None,
        cpu_limit=quota_to_cpu_limit(linux.cpu_quota, linux.cpu_period) if has_quota else None,
        memory_limit=bytes_to_memory_limit(linux.memory_limit_in_bytes or None),
    )


def _user(status: c.CriContainerStatus) -> LinuxContainerUser | None:
    linux = status.user.linux if status.user is not None else None
    if linux is None:
        return None
    return LinuxContainerUser(
        uid=linux.uid, gid=linux.gid, supplemental_groups=linux.supplemental_groups or None
    )


def _restart_count(annotations: Mapping[str, str]) -> int:
    text = annotations.get(labels.RESTART_COUNT, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _sandbox_order(sandbox: SandboxInfo) -> tuple[int, str]:
    return -sandbox.listed.created_at, sandbox.listed.id


def _attempt_order(attempt: ContainerInfo) -> tuple[int, str]:
    return -attempt.listed.created_at, attempt.listed.id


def _time(nanos: int) -> Time:
    return Time.from_unix_nanos(nanos) if nanos > 0 else UNSET_TIME
