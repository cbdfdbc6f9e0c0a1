"""The calls of RuntimeService that the runtime needs, each with its deadline.

Deadlines are upstream's: `request_seconds` (`runtimeRequestTimeout`), twice as long for the start
of a sandbox, which includes its network, and in addition to the grace period of a stop.

Upstream: remoteRuntimeService, cri-client v0.36.4, pkg/remote_runtime.go.
"""

from collections.abc import Mapping
from typing import TypeVar

from podstatus.kube.encoding.protobuf.wire import MalformedMessageError
from podstatus.runtime.cri.api import containers as c
from podstatus.runtime.cri.api import sandboxes as s
from podstatus.runtime.cri.api.codec import CriMessage
from podstatus.runtime.cri.api.status import (
    CriRuntimeCondition,
    CriStatusRequest,
    CriStatusResponse,
    CriVersionRequest,
    CriVersionResponse,
)
from podstatus.runtime.cri.client.channel import CriChannel
from podstatus.runtime.cri.client.errors import CriCallError
from podstatus.runtime.cri.client.list_cache import ListCache

T = TypeVar("T", bound=CriMessage)
_SERVICE = "RuntimeService"
_MAX_COMMAND_SECONDS = 24 * 3600.0
"""Commands of probes and hooks have limits of their own, which cancel the call."""


class RuntimeService:
    """Typed calls. All raise RuntimeDownError and CriCallError."""

    def __init__(self, channel: CriChannel, *, request_seconds: float) -> None:
        self._channel = channel
        self._seconds = request_seconds
        self._sandboxes = ListCache(s.CriPodSandbox)
        self._containers = ListCache(c.CriContainer)

    async def version(self) -> CriVersionResponse:
        """Return name and version of the runtime."""
        return await self._channel.call(
            _SERVICE, CriVersionRequest(), CriVersionResponse, self._seconds
        )

    async def conditions(self) -> tuple[CriRuntimeCondition, ...]:
        """Return the runtime's conditions: RuntimeReady, NetworkReady."""
        response = await self._channel.call(
            _SERVICE, CriStatusRequest(), CriStatusResponse, self._seconds
        )
        return response.status.conditions if response.status is not None else ()

    async def run_pod_sandbox(self, config: s.CriPodSandboxConfig) -> str:
        """Create and start a sandbox; return its ID."""
        request = s.CriRunPodSandboxRequest(config=config)
        response = await self._channel.call(
            _SERVICE, request, s.CriRunPodSandboxResponse, 2 * self._seconds
        )
        return response.pod_sandbox_id

    async def stop_pod_sandbox(self, id: str) -> None:
        """Kill what runs in a sandbox and release its network; idempotent."""
        request = s.CriStopPodSandboxRequest(pod_sandbox_id=id)
        await self._channel.call(_SERVICE, request, s.CriStopPodSandboxResponse, self._seconds)

    async def remove_pod_sandbox(self, id: str) -> None:
        """Remove a sandbox with its containers; idempotent."""
        request = s.CriRemovePodSandboxRequest(pod_sandbox_id=id)
        await self._channel.call(_SERVICE, request, s.CriRemovePodSandboxResponse, self._seconds)

    async def pod_sandbox_status(self, id: str) -> s.CriPodSandboxStatus:
        """Return the status of a sandbox."""
        request = s.CriPodSandboxStatusRequest(pod_sandbox_id=id)
        response = await self._channel.call(
            _SERVICE, request, s.CriPodSandboxStatusResponse, self._seconds
        )
        return response.status or s.CriPodSandboxStatus(id=id)

    async def list_pod_sandboxes(
        self, labels: Mapping[str, str] | None = None
    ) -> tuple[s.CriPodSandbox, ...]:
        """Return the sandboxes with these labels; all without labels."""
        filter = s.CriPodSandboxFilter(label_selector=labels or {})
        response = await self._channel.call(
            _SERVICE,
            s.CriListPodSandboxRequest(filter=filter),
            s.CriListPodSandboxResponse,
            self._seconds,
        )
        cache = self._sandboxes if labels is None else ListCache(s.CriPodSandbox)
        return _decode(cache, response.items)

    async def create_container(self, request: c.CriCreateContainerRequest) -> str:
        """Create a container in a sandbox; return its ID."""
        response = await self._channel.call(
            _SERVICE, request, c.CriCreateContainerResponse, self._seconds
        )
        return response.container_id

    async def start_container(self, id: str) -> None:
        """Start a container that was created."""
        request = c.CriStartContainerRequest(container_id=id)
        await self._channel.call(_SERVICE, request, c.CriStartContainerResponse, self._seconds)

    async def stop_container(self, id: str, grace_seconds: int) -> None:
        """Stop a container and return when it has ended; idempotent.

        With a grace period of 0 it is killed at once, without a stop signal.
        """
        request = c.CriStopContainerRequest(container_id=id, timeout=grace_seconds)
        seconds = self._seconds + grace_seconds
        await self._channel.call(_SERVICE, request, c.CriStopContainerResponse, seconds)

    async def remove_container(self, id: str) -> None:
        """Remove a container, also a running one; idempotent."""
        request = c.CriRemoveContainerRequest(container_id=id)
        await self._channel.call(_SERVICE, request, c.CriRemoveContainerResponse, self._seconds)

    async def list_containers(
        self, labels: Mapping[str, str] | None = None
    ) -> tuple[c.CriContainer, ...]:
        """Return the containers with these labels; all without labels."""
        filter = c.CriContainerFilter(label_selector=labels or {})
        response = await self._channel.call(
            _SERVICE,
            c.CriListContainersRequest(filter=filter),
            c.CriListContainersResponse,
            self._seconds,
        )
        cache = self._containers if labels is None else ListCache(c.CriContainer)
        return _decode(cache, response.containers)

    async def container_status(self, id: str) -> c.CriContainerStatus:
        """Return the status of a container."""
        request = c.CriContainerStatusRequest(container_id=id)
        response = await self._channel.call(
            _SERVICE, request, c.CriContainerStatusResponse, self._seconds
        )
        return response.status or c.CriContainerStatus(id=id)

    async def exec_sync(self, id: str, command: tuple[str, ...]) -> c.CriExecSyncResponse:
        """Run a command to its end; the runtime kills it when this is cancelled."""
        request = c.CriExecSyncRequest(container_id=id, cmd=command)
        return await self._channel.call(
            _SERVICE, request, c.CriExecSyncResponse, _MAX_COMMAND_SECONDS
        )

    async def exec_url(self, request: c.CriExecRequest) -> str:
        """Return the address of the runtime's streaming server for an exec, valid once."""
        response = await self._channel.call(_SERVICE, request, c.CriExecResponse, self._seconds)
        return response.url

    async def attach_url(self, request: c.CriAttachRequest) -> str:
        """Return the address of the runtime's streaming server for an attach, valid once."""
        response = await self._channel.call(_SERVICE, request, c.CriAttachResponse, self._seconds)
        return response.url


def _decode(cache: ListCache[T], items: tuple[bytes, ...]) -> tuple[T, ...]:
    try:
        return cache.decode(items)
    except MalformedMessageError as error:
        raise CriCallError("List", "INTERNAL", f"malformed response: {error}") from error
