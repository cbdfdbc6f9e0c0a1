"""Periodic refresh of projected volumes: configMaps, secrets, tokens."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.port import CannotStartError

logger = logging.getLogger(__name__)

REFRESH_SECONDS = 60.0
"""Upstream refreshes at every pod sync, which is once a minute."""
MAX_CONCURRENT_REFRESHES = 4
"""Pods refreshed at a time; each sends requests to the API server."""


class Refresher:
    """Refreshes the volumes of all pods once a minute."""

    def __init__(
        self,
        refresh_pod: Callable[[Pod], Awaitable[None]],
        pods: Callable[[], Iterable[Pod]],
        *,
        clock: Clock,
        heartbeat: Callable[[], None],
    ) -> None:
        """`refresh_pod` updates the pod's volumes, and may raise CannotStartError."""
        self._refresh_pod = refresh_pod
        self._pods = pods
        self._clock = clock
        self._heartbeat = heartbeat

    async def run(self) -> None:
        """Refresh until cancelled; the failure of one pod does not affect others."""
        while True:
            self._heartbeat()
            await self._clock.wait(REFRESH_SECONDS)
            await self.refresh_once()

    async def refresh_once(self) -> None:
        """Refresh all pods, several at a time, so that large volumes do not delay other pods."""
        queue = list(reversed(list(self._pods())))

        async def work() -> None:
            while queue:
                await self._refresh(queue.pop())

        async with asyncio.TaskGroup() as group:
            for _ in range(min(MAX_CONCURRENT_REFRESHES, len(queue))):
                group.create_task(work())

    async def _refresh(self, pod: Pod) -> None:
        self._heartbeat()
        try:
            await self._refresh_pod(pod)
        except CannotStartError as error:
            logger.warning(
                "cannot refresh volumes, will retry: pod=%s/%s error=%s",
                pod.namespace,
                pod.name,
                error.message,
            )
        except Exception:
            logger.exception("cannot refresh volumes: pod=%s/%s", pod.namespace, pod.name)
