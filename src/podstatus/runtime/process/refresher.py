"""Keep what is projected into pods up to date: configMaps, secrets, tokens."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.port import CannotStartError

logger = logging.getLogger(__name__)

REFRESH_SECONDS = 60.0
"""Seconds. Upstream does it with every sync of a pod, which is once a minute."""
MAX_CONCURRENT_REFRESHES = 4
"""Pods. Each asks the API server for what it refers to."""


class RefreshesPods(Protocol):
    """What can be told to look again."""

    async def refresh_pod(self, pod: Pod) -> None:
        """Put what changed since into the pod's volumes. Raises CannotStartError."""


class Refresher:
    """Has all pods looked at, once a minute."""

    def __init__(
        self,
        runtime: RefreshesPods,
        pods: Callable[[], Iterable[Pod]],
        *,
        clock: Clock,
        period: float = REFRESH_SECONDS,
        heartbeat: Callable[[], None] = lambda: None,
    ) -> None:
        self._runtime = runtime
        self._pods = pods
        self._clock = clock
        self._period = period
        self._heartbeat = heartbeat

    async def run(self) -> None:
        """Look until cancelled; no pod's trouble is another one's."""
        while True:
            self._heartbeat()
            await self._clock.wait(self._period)
            await self.refresh_once()

    async def refresh_once(self) -> None:
        """Look at all pods, some at a time: one with large volumes keeps no other waiting."""
        waiting = list(reversed(list(self._pods())))

        async def work() -> None:
            while waiting:
                await self._refresh(waiting.pop())

        async with asyncio.TaskGroup() as group:
            for _ in range(min(MAX_CONCURRENT_REFRESHES, len(waiting))):
                group.create_task(work())

    async def _refresh(self, pod: Pod) -> None:
        self._heartbeat()
        try:
            await self._runtime.refresh_pod(pod)
        except CannotStartError as error:
            logger.warning(
                "volumes not refreshed, will retry: pod=%s/%s error=%s",
                pod.namespace,
                pod.name,
                error.message,
            )
        except Exception:
            logger.exception("volumes not refreshed: pod=%s/%s", pod.namespace, pod.name)
