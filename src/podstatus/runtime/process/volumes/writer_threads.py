"""Threads that write volumes: tens of thousands of files take seconds, and the event loop none.

A volume has one writer at a time. One whose caller is cancelled writes on; the next one waits for
it, and a pod's writers are stopped before its folder goes.
"""

import asyncio
import errno
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from podstatus.kube.objects.pod import PodUID

T = TypeVar("T")
CancelCheck = Callable[[], None]
"""To be called between two files. Raises FileNotFoundError if the pod is being removed."""

MAX_THREADS = 4
"""Apart from the loop's own threads, so that slow volumes hold up volumes only."""


class VolumeWriterPool:
    """Runs what fills volumes. For one event loop."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="podstatus-volumes")
        self._jobs: dict[tuple[PodUID, str], _Job] = {}

    async def run(self, uid: PodUID, volume: str, work: Callable[[CancelCheck], T]) -> T:
        """What the work returns, or raises, in a thread; after those before it are done."""
        key = uid, volume
        while (before := self._jobs.get(key)) is not None:
            await self._wait_done(key, before)
        job = self._jobs[key] = _Job()
        future = self._pool.submit(work, job.check)
        job.future = future
        try:
            return await asyncio.wrap_future(future)
        finally:
            if future.done():
                self._remove_job(key, job)

    async def stop(self, uid: PodUID) -> None:
        """Have those of a pod stop, and come back when they have."""
        jobs = [(key, job) for key, job in self._jobs.items() if key[0] == uid]
        for _, job in jobs:
            job.stop()
        for key, job in jobs:
            await self._wait_done(key, job)

    def close(self) -> None:
        """Have all stop; those that wait never begin."""
        for job in self._jobs.values():
            job.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _wait_done(self, key: tuple[PodUID, str], job: "_Job") -> None:
        if job.future is not None and not job.future.done():
            ended = asyncio.wrap_future(job.future)
            await asyncio.wait([ended])
            with suppress(asyncio.CancelledError):
                ended.exception()
        self._remove_job(key, job)

    def _remove_job(self, key: tuple[PodUID, str], job: "_Job") -> None:
        if self._jobs.get(key) is job:
            del self._jobs[key]


class _Job:
    """Work in a thread."""

    def __init__(self) -> None:
        self.future: Future[Any] | None = None
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def check(self) -> None:
        if self._stopped.is_set():
            raise FileNotFoundError(errno.ENOENT, "the pod is being removed")
