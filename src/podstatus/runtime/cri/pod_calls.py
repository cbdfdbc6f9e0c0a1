"""Calls about one pod: queries by its labels, and changes that outlive their caller."""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.cri.api.containers import CriContainer
from podstatus.runtime.cri.api.sandboxes import CriPodSandbox
from podstatus.runtime.cri.client.errors import CriCallError
from podstatus.runtime.cri.client.runtime_service import RuntimeService
from podstatus.runtime.cri.model import labels
from podstatus.runtime.cri.model.facts import sandbox_ips
from podstatus.runtime.port import RuntimeDownError

T = TypeVar("T")


async def tolerant(call: Awaitable[None]) -> None:
    """Await the stop or removal of what may not exist. Raises RuntimeDownError."""
    try:
        await call
    except CriCallError as error:
        if not error.is_not_found:
            raise RuntimeDownError(str(error)) from error


class PodCalls:
    """Calls that are completed although their caller was cancelled.

    A runtime cannot take back half of a start; a second call would overtake it.
    """

    def __init__(self) -> None:
        self._unfinished: dict[PodUID, set[asyncio.Task[Any]]] = {}

    async def finish(self, uid: PodUID, call: Coroutine[Any, Any, T]) -> T:
        """Await a call; if that is cancelled, the call goes on."""
        task = asyncio.create_task(call)
        self._unfinished.setdefault(uid, set()).add(task)
        task.add_done_callback(lambda done: self._forget(uid, done))
        return await asyncio.shield(task)

    async def settle(self, uid: PodUID) -> None:
        """Wait for calls of callers that were cancelled."""
        while tasks := self._unfinished.get(uid):
            await asyncio.wait(tasks)

    def _forget(self, uid: PodUID, task: asyncio.Task[Any]) -> None:
        tasks = self._unfinished.get(uid, set())
        tasks.discard(task)
        if not tasks:
            self._unfinished.pop(uid, None)
        if not task.cancelled():
            task.exception()  # its caller may be gone


class PodQueries:
    """Sandboxes and containers of one pod. Raises RuntimeDownError."""

    def __init__(self, runtime: RuntimeService) -> None:
        self._runtime = runtime

    async def sandboxes(self, uid: PodUID) -> tuple[CriPodSandbox, ...]:
        """Return the sandboxes of a pod, newest first."""
        selector = labels.pod_selector(uid)
        listed = await _query(self._runtime.list_pod_sandboxes(selector))
        return tuple(sorted(listed, key=lambda sandbox: -sandbox.created_at))

    async def newest_sandbox(self, uid: PodUID) -> CriPodSandbox | None:
        """Return the newest sandbox of a pod; None if it has none."""
        return next(iter(await self.sandboxes(uid)), None)

    async def ips(self, sandbox_id: str) -> tuple[str, ...]:
        """Return the addresses of a sandbox."""
        return sandbox_ips(await _query(self._runtime.pod_sandbox_status(sandbox_id)))

    async def containers(self, uid: PodUID) -> tuple[CriContainer, ...]:
        """Return all attempts of all containers of a pod."""
        return await _query(self._runtime.list_containers(labels.pod_selector(uid)))

    async def attempts(self, uid: PodUID, name: str) -> tuple[CriContainer, ...]:
        """Return the attempts of a container."""
        selector = {**labels.pod_selector(uid), labels.CONTAINER_NAME: name}
        return await _query(self._runtime.list_containers(selector))

    async def find_container(self, uid: PodUID, id: str) -> CriContainer | None:
        """Return a container of a pod; None if the pod does not have it."""
        return next((item for item in await self.containers(uid) if item.id == id), None)


async def _query(call: Awaitable[T]) -> T:
    try:
        return await call
    except CriCallError as error:
        raise RuntimeDownError(str(error)) from error
