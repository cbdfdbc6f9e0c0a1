"""Lists pods: sandboxes and containers, and the status of those that changed.

A list of CRI has states, but neither times nor exit codes. The status of a sandbox or container is
read once for each of its states, and its facts are the same objects while nothing changes.

Upstream: GetPods and GetPodStatus, kuberuntime/kuberuntime_manager.go v1.36.4.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.cri.api.containers import (
    CONTAINER_EXITED,
    CriContainer,
    CriContainerStatus,
)
from podstatus.runtime.cri.api.sandboxes import CriPodSandbox
from podstatus.runtime.cri.client.errors import CriCallError
from podstatus.runtime.cri.client.runtime_service import RuntimeService
from podstatus.runtime.cri.model import labels
from podstatus.runtime.cri.model.facts import ContainerInfo, SandboxInfo, runtime_pod
from podstatus.runtime.port import RuntimeDownError, RuntimePod
from podstatus.runtime.process.logs.termination_message import (
    message_from_log,
    message_from_own_file,
)

T = TypeVar("T", CriPodSandbox, CriContainer)
S = TypeVar("S")
_FALLBACK = "FallbackToLogsOnError"
_START_ERROR = "StartError"
_MAX_CALLS = 16
"""Status calls at a time; the first list of an agent reads all."""


class PodLister:
    """The pods of the runtime. Not thread-safe: for one event loop."""

    def __init__(self, runtime: RuntimeService, name: str) -> None:
        """`name` is the scheme of container IDs."""
        self._runtime = runtime
        self._name = name
        self._sandboxes: dict[str, SandboxInfo] = {}
        self._containers: dict[str, ContainerInfo] = {}
        self._pods: dict[PodUID, tuple[Sequence[object], RuntimePod]] = {}
        self._calls = asyncio.Semaphore(_MAX_CALLS)

    async def list_all(self) -> tuple[RuntimePod, ...]:
        """Return all pods. Raises RuntimeDownError."""
        try:
            sandboxes = await self._runtime.list_pod_sandboxes()
            containers = await self._runtime.list_containers()
        except CriCallError as error:
            raise _down(error) from error
        await self._read_all(sandboxes, containers)
        self._forget(sandboxes, containers)
        return self._assemble(sandboxes, containers)

    async def list_pod(self, uid: PodUID) -> tuple[RuntimePod, ...]:
        """Return one pod, or nothing. Raises RuntimeDownError."""
        selector = labels.pod_selector(uid)
        try:
            sandboxes = await self._runtime.list_pod_sandboxes(selector)
            containers = await self._runtime.list_containers(selector)
        except CriCallError as error:
            raise _down(error) from error
        await self._read_all(sandboxes, containers)
        return self._assemble(sandboxes, containers)

    def log_path(self, id: str) -> Path | None:
        """Return the log of a container as last listed; None if it does not exist."""
        info = self._containers.get(id)
        return Path(info.status.log_path) if info is not None else None

    def has_ended(self, id: str) -> bool:
        """Return whether a container had ended when it was last listed."""
        info = self._containers.get(id)
        return info is None or info.status.state == CONTAINER_EXITED

    async def _read_all(
        self, sandboxes: Iterable[CriPodSandbox], containers: Iterable[CriContainer]
    ) -> None:
        # Not a TaskGroup: the error is one, and named by the port.
        await asyncio.gather(
            *map(self._read_sandbox, _changed(sandboxes, self._sandboxes)),
            *map(self._read_container, _changed(containers, self._containers)),
        )

    async def _read_sandbox(self, listed: CriPodSandbox) -> None:
        status = await self._limited(lambda: self._runtime.pod_sandbox_status(listed.id))
        if status is None:
            self._sandboxes.pop(listed.id, None)
        else:
            self._sandboxes[listed.id] = SandboxInfo(listed=listed, status=status)

    async def _read_container(self, listed: CriContainer) -> None:
        status = await self._limited(lambda: self._runtime.container_status(listed.id))
        if status is None:
            self._containers.pop(listed.id, None)
            return
        message = ""
        if status.state == CONTAINER_EXITED:
            message = await asyncio.to_thread(_termination_message, status)
        self._containers[listed.id] = ContainerInfo(listed=listed, status=status, message=message)

    async def _limited(self, call: Callable[[], Awaitable[S]]) -> S | None:
        """Return the status; None if it was removed since it was listed."""
        async with self._calls:
            try:
                return await call()
            except CriCallError as error:
                if error.is_not_found:
                    return None
                raise _down(error) from error

    def _forget(
        self, sandboxes: Iterable[CriPodSandbox], containers: Iterable[CriContainer]
    ) -> None:
        """Drop what is no longer listed."""
        listed: tuple[CriPodSandbox | CriContainer, ...] = (*sandboxes, *containers)
        ids = {item.id for item in listed}
        self._sandboxes = {id: info for id, info in self._sandboxes.items() if id in ids}
        self._containers = {id: info for id, info in self._containers.items() if id in ids}
        uids = {item.labels.get(labels.POD_UID, "") for item in listed}
        self._pods = {uid: pod for uid, pod in self._pods.items() if uid in uids}

    def _assemble(
        self, sandboxes: Iterable[CriPodSandbox], containers: Iterable[CriContainer]
    ) -> tuple[RuntimePod, ...]:
        by_uid: dict[PodUID, tuple[list[SandboxInfo], list[ContainerInfo]]]
        by_uid = defaultdict(lambda: ([], []))
        for sandbox in sandboxes:
            if (info := self._sandboxes.get(sandbox.id)) is not None:
                by_uid[_uid(sandbox.labels)][0].append(info)
        for container in containers:
            if (attempt := self._containers.get(container.id)) is not None:
                by_uid[_uid(container.labels)][1].append(attempt)
        # What has no pod was not made by a kubelet or an agent.
        by_uid.pop(PodUID(""), None)
        return tuple(self._pod(uid, *parts) for uid, parts in by_uid.items())

    def _pod(
        self, uid: PodUID, sandboxes: list[SandboxInfo], containers: list[ContainerInfo]
    ) -> RuntimePod:
        infos: tuple[SandboxInfo | ContainerInfo, ...] = (*sandboxes, *containers)
        sources = sorted(infos, key=lambda info: info.listed.id)
        known, pod = self._pods.get(uid, ((), None))
        is_same = len(known) == len(sources) and all(map(_is, known, sources))
        if pod is None or not is_same:
            pod = runtime_pod(self._name, sandboxes, containers)
            self._pods[uid] = sources, pod
        return pod


def _changed(listed: Iterable[T], known: Mapping[str, SandboxInfo | ContainerInfo]) -> list[T]:
    """Return the items whose status was not read in their present state."""
    return [
        item for item in listed if item.id not in known or known[item.id].listed.state != item.state
    ]


def _is(one: object, other: object) -> bool:
    return one is other


def _uid(item_labels: Mapping[str, str]) -> PodUID:
    return PodUID(item_labels.get(labels.POD_UID, ""))


def _down(error: CriCallError) -> RuntimeDownError:
    return RuntimeDownError(f"the container runtime cannot list its pods: {error}")


def _termination_message(status: CriContainerStatus) -> str:
    """Return the message that a container left: its file, or the end of its log.

    Upstream: getTerminationMessage, kuberuntime_container.go v1.36.4.
    """
    target = status.annotations.get(labels.MESSAGE_PATH, "")
    source = next((m.host_path for m in status.mounts if m.container_path == target), "")
    try:
        message = message_from_own_file(Path(source)) if target and source else ""
    except OSError as error:
        return f"Error on reading termination log {source}: {error.strerror}"
    falls_back = status.annotations.get(labels.MESSAGE_POLICY) == _FALLBACK
    if message or not falls_back or not status.exit_code or status.reason == _START_ERROR:
        return message
    return message_from_log(Path(status.log_path))
