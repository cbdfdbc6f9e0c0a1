"""Publishes the UIDs of changed pods to subscribers."""

import asyncio
import weakref
from collections.abc import AsyncIterator

from podstatus.kube.objects.pod import PodUID


class ChangeFeed:
    """All subscriptions. Not thread-safe: for one event loop."""

    def __init__(self) -> None:
        self._subscriptions: weakref.WeakSet[_Subscription] = weakref.WeakSet()

    def subscribe(self) -> AsyncIterator[PodUID]:
        """Return a subscription to changes from now on; it never ends."""
        subscription = _Subscription()
        self._subscriptions.add(subscription)
        return subscription

    def publish(self, uid: PodUID) -> None:
        """Notify all subscriptions that this pod has changed."""
        for subscription in self._subscriptions:
            subscription.notify(uid)


class _Subscription(AsyncIterator[PodUID]):
    """Repeated changes of a pod are coalesced."""

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
