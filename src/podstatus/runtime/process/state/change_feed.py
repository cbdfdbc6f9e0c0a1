"""Tell whoever asks which pods are to be looked at again."""

import asyncio
import weakref
from collections.abc import AsyncIterator

from podstatus.kube.objects.pod import PodUID


class Hints:
    """All who asked. For one event loop."""

    def __init__(self) -> None:
        self._asked: weakref.WeakSet[_PodsToLookAt] = weakref.WeakSet()

    def ask(self) -> AsyncIterator[PodUID]:
        """The pods that change from now on."""
        watcher = _PodsToLookAt()
        self._asked.add(watcher)
        return watcher

    def tell(self, uid: PodUID) -> None:
        """The facts of this pod have changed."""
        for watcher in self._asked:
            watcher.tell(uid)


class _PodsToLookAt(AsyncIterator[PodUID]):
    """Many changes of a pod count as one."""

    def __init__(self) -> None:
        self._pods: dict[PodUID, None] = {}
        self._some = asyncio.Event()

    def tell(self, uid: PodUID) -> None:
        self._pods[uid] = None
        self._some.set()

    async def __anext__(self) -> PodUID:
        while not self._pods:
            self._some.clear()
            await self._some.wait()
        uid = next(iter(self._pods))
        del self._pods[uid]
        return uid
