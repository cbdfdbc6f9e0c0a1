"""Threads that write volumes: tens of thousands of files take seconds, too long for the event loop.

A volume has one writer at a time. A writer whose caller is cancelled continues, and the next writer
waits for it. A pod's writers are stopped before its folder is removed.
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
"""Called between two files. Raises FileNotFoundError if the pod is being removed."""

MAX_THREADS = 4
"""Separate from the loop's default executor, so that slow volumes delay only volumes."""


class VolumeWriterPool:
    """Runs volume writers in threads. Not thread-safe itself: for one event loop."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="podstatus-volumes")
        self._jobs: dict[tuple[PodUID, str], _Job] = {}

    async def run(self, uid: PodUID, volume: str, work: Callable[[CancelCheck], T]) -> T:
        """Run `work` in a thread after earlier work on the volume; return or raise its result."""
        key = uid, volume
        while (previous := self._jobs.get(key)) is not None:
            await self._wait_done(key, previous)
        job = self._jobs[key] = _Job()
        future = self._pool.submit(work, job.check)
        job.future = future
        try:
            return await asyncio.wrap_future(future)
        finally:
            if future.done():
                self._remove_job(key, job)

    async def stop(self, uid: PodUID) -> None:
        """Stop the writers of a pod; return when they have ended."""
        jobs = [(key, job) for key, job in self._jobs.items() if key[0] == uid]
        for _, job in jobs:
            job.stop()
        for key, job in jobs:
            await self._wait_done(key, job)

    def close(self) -> None:
        """Stop all writers; queued work never starts."""
        for job in self._jobs.values():
            job.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _wait_done(self, key: tuple[PodUID, str], job: "_Job") -> None:
        if job.future is not None and not job.future.done():
            finished = asyncio.wrap_future(job.future)
            await asyncio.wait([finished])
            with suppress(asyncio.CancelledError):
                finished.exception()
        self._remove_job(key, job)

    def _remove_job(self, key: tuple[PodUID, str], job: "_Job") -> None:
        if self._jobs.get(key) is job:
            del self._jobs[key]


class _Job:
    def __init__(self) -> None:
        self.future: Future[Any] | None = None
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def check(self) -> None:
        if self._stopped.is_set():
            raise FileNotFoundError(errno.ENOENT, "the pod is being removed")
