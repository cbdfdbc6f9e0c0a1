"""Parsing of recorded runtime statuses (FORMAT.md, section 4)."""

from collections.abc import Mapping
from typing import Any

from podstatus.kube.encoding.codec import from_document
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
from podstatus.kube.scalars.time import Time


def parse_facts(runtime: Mapping[str, Any]) -> PodFacts:
    """Return the facts of a recorded `runtimeStatus`."""
    return PodFacts(
        sandboxes=tuple(map(_sandbox, runtime.get("sandboxStatuses") or ())),
        containers=tuple(map(_container, runtime.get("containerStatuses") or ())),
        ips=tuple(runtime.get("ips") or ()),
    )


def _sandbox(sandbox: Mapping[str, Any]) -> SandboxFacts:
    return SandboxFacts(
        id=sandbox.get("id", ""),
        state=SandboxState(sandbox["state"]),
        attempt=sandbox.get("attempt", 0),
        network=NetworkMode(sandbox.get("networkNamespace") or "POD"),
        ip=sandbox.get("ip"),
    )


def _container(container: Mapping[str, Any]) -> ContainerFacts:
    user = container.get("user")
    return ContainerFacts(
        id=container.get("id", ""),
        name=container["name"],
        state=ContainerRunState(container["state"] or "unknown"),
        created_at=Time.parse(container.get("createdAt")),
        started_at=Time.parse(container.get("startedAt")),
        finished_at=Time.parse(container.get("finishedAt")),
        exit_code=container.get("exitCode", 0),
        reason=container.get("reason", ""),
        message=container.get("message", ""),
        image=container.get("image", ""),
        image_ref=container.get("imageRef", ""),
        restart_count=container.get("restartCount", 0),
        resources=_resources(container.get("resources")),
        user=None if user is None else from_document(user, LinuxContainerUser),
        active=container.get("active", False),
    )


def _resources(resources: Mapping[str, Any] | None) -> ResourceFacts | None:
    if resources is None:
        return None
    amounts = {name: Quantity.parse(value) for name, value in resources.items()}
    return ResourceFacts(
        cpu_request=amounts.get("cpuRequest"),
        cpu_limit=amounts.get("cpuLimit"),
        memory_request=amounts.get("memoryRequest"),
        memory_limit=amounts.get("memoryLimit"),
    )
