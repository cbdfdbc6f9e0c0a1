"""Tell whoever asks which pods are to be looked at again."""

import asyncio
import weakref
from collections.abc import AsyncIterator

from podstatus.kube.objects.pod import PodUID


class ChangeFeed:
    """All who asked. For one event loop."""

    def __init__(self) -> None:
        self._subscriptions: weakref.WeakSet[_Subscription] = weakref.WeakSet()

    def subscribe(self) -> AsyncIterator[PodUID]:
        """The pods that change from now on."""
        watcher = _Subscription()
        self._subscriptions.add(watcher)
        return watcher

    def publish(self, uid: PodUID) -> None:
        """The facts of this pod have changed."""
        for watcher in self._subscriptions:
            watcher.notify(uid)


class _Subscription(AsyncIterator[PodUID]):
    """Many changes of a pod count as one."""

    def __init__(self) -> None:
        self._pods: dict[PodUID, None] = {}
        self._available = asyncio.Event()

    def notify(self, uid: PodUID) -> None:
        self._pods[uid] = None
        self._available.set()

    async def __anext__(self) -> PodUID:
        while not self._pods:
            self._available.clear()
            await self._available.wait()
        uid = next(iter(self._pods))
        del self._pods[uid]
        return uid
