"""The outbox never goes back: what is kept is the newest, and only what has arrived is dropped."""

import asyncio
import threading

import pytest
from msgspec import structs

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.versioned_status import UnsentUpdate, VersionedStatus
from podstatus.status.ports import OutboxEntry
from podstatus.status.sync.outbox_writer import OutboxWriter
from podstatus.testing.clock import run_ready_tasks
from tests.status.sync.parallel_scene import SUCCEEDED, HangingOutbox, in_loop
from tests.support.status_fleet import MemoryOutbox


def an_end(version: int) -> VersionedStatus:
    """Return the final status of pod a, with the version in its message."""
    return VersionedStatus(
        version=version,
        namespace="default",
        name="a",
        finished=True,
        status=structs.replace(SUCCEEDED, message=str(version)),
        unsent=(UnsentUpdate(version, Time.parse("2026-11-15T12:00:00Z")),),
    )


@in_loop
async def test_what_is_kept_of_a_pod_that_was_forgotten_goes_when_a_new_status_arrives() -> None:
    undelivered, uid = OutboxWriter(outbox := MemoryOutbox()), PodUID("uid-a")
    old, new = an_end(version=9), an_end(version=1)
    await undelivered.store(uid, old, lambda _: old)
    await undelivered.acknowledged(uid, new, lambda _: new)
    assert outbox.kept == {}


@in_loop
async def test_what_was_kept_while_the_outbox_is_tidied_stays() -> None:
    outbox, uid = HangingOutbox(), PodUID("uid-a")
    undelivered = OutboxWriter(outbox)
    old, new = an_end(version=1), an_end(version=2)
    await undelivered.store(uid, old, lambda _: old)
    await undelivered.store(PodUID("uid-0"), old, lambda _: old)
    undelivered._stored_versions = dict(reversed(undelivered._stored_versions.items()))
    tidying = asyncio.create_task(undelivered.retain_only(()))  # waits for the disk with the first
    await run_ready_tasks()
    await undelivered.store(uid, new, lambda _: new)
    outbox.disk.set()
    await tidying
    assert set(outbox.kept) == {uid}


@in_loop
async def test_an_older_end_does_not_take_the_place_of_a_newer_one() -> None:
    undelivered, uid = OutboxWriter(outbox := MemoryOutbox()), PodUID("uid-a")
    old, new = an_end(version=1), an_end(version=2)
    await asyncio.gather(
        undelivered.store_all([uid], lambda _: new), undelivered.store(uid, old, lambda _: new)
    )
    assert [it.status.message for it in outbox.kept.values()] == ["2"]
    assert outbox.log == ["keep a"]


class SlowOutbox(MemoryOutbox):
    """Blocks on disk when it replaces an entry."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = threading.Event()

    def store(self, entry: OutboxEntry) -> None:
        if self.kept:
            self.disk.wait(10)
        super().store(entry)


@pytest.mark.parametrize(("is_gone", "left"), [(True, set()), (False, {PodUID("uid-a")})])
@in_loop
async def test_who_asks_while_an_earlier_one_waits_for_its_turn_is_heard_as_if_alone(
    is_gone: bool,
    left: set[PodUID],
) -> None:
    undelivered, uid = OutboxWriter(outbox := SlowOutbox()), PodUID("uid-a")
    old, newer, newest = an_end(version=1), an_end(version=2), an_end(version=3)
    await undelivered.store(uid, old, lambda _: old)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(undelivered.store(uid, newest, lambda _: newest))
        await run_ready_tasks()
        tasks.create_task(undelivered.acknowledged(uid, old, lambda _: newest))
        await run_ready_tasks()
        if is_gone:
            await undelivered.drop(uid)
        else:
            await undelivered.acknowledged(uid, newer, lambda _: newest)
        outbox.disk.set()
    assert set(outbox.kept) == left
    await undelivered.retain_only({uid})
    assert set(outbox.kept) == left, "nor is it taken for one whose time has come"
