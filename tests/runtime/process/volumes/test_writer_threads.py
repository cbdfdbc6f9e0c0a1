"""Volumes are written in threads, by one writer at a time, and never after their pod is gone."""

import asyncio
import threading

import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.volumes.writer_threads import (
    MAX_THREADS,
    CancelCheck,
    VolumeWriterPool,
)

UID, OTHER = PodUID("u"), PodUID("v")


class Work:
    """Work that blocks until the test releases it."""

    def __init__(self) -> None:
        self.began, self.go_on = threading.Event(), threading.Event()

    def __call__(self, check: CancelCheck) -> int:
        self.began.set()
        while not self.go_on.wait(0.001):
            check()
        return threading.get_ident()


async def begun(work: Work) -> None:
    await asyncio.to_thread(work.began.wait)


async def test_the_loop_goes_on_meanwhile_and_the_result_comes_back() -> None:
    writers, work = VolumeWriterPool(), Work()
    task = asyncio.create_task(writers.run(UID, "v", work))
    await begun(work)
    work.go_on.set()
    assert await task != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await writers.run(UID, "v", lambda _: 1 // 0)
    writers.close()


async def test_a_volume_has_one_writer_also_if_its_caller_is_cancelled() -> None:
    writers, first, second, other = VolumeWriterPool(), Work(), Work(), Work()
    cancelled = asyncio.create_task(writers.run(UID, "v", first))
    await begun(first)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    later = asyncio.create_task(writers.run(UID, "v", second))
    beside = asyncio.create_task(writers.run(UID, "w", other))
    await begun(other)
    assert not second.began.is_set()
    for work in (first, second, other):
        work.go_on.set()
    await asyncio.gather(later, beside)
    assert second.began.is_set()
    writers.close()


async def test_the_writers_of_a_pod_stop_before_it_is_removed() -> None:
    writers, own, theirs = VolumeWriterPool(), Work(), Work()
    tasks = [
        asyncio.create_task(writers.run(uid, "v", work))
        for uid, work in ((UID, own), (OTHER, theirs))
    ]
    await begun(own)
    await begun(theirs)
    await writers.stop(UID)
    assert isinstance((await asyncio.gather(tasks[0], return_exceptions=True))[0], OSError)
    assert not tasks[1].done()
    writers.close()
    await asyncio.wait(tasks)


async def test_slow_volumes_take_no_more_threads_than_there_are() -> None:
    writers, works = VolumeWriterPool(), [Work() for _ in range(MAX_THREADS + 1)]
    tasks = [
        asyncio.create_task(writers.run(UID, str(number), work))
        for number, work in enumerate(works)
    ]
    for work in works[:-1]:
        await begun(work)
    assert not works[-1].began.is_set()
    for work in works:
        work.go_on.set()
    assert len(set(await asyncio.gather(*tasks))) <= MAX_THREADS
    writers.close()
