"""The outbox on disk becomes equal to what it has to contain, whatever fails on the way."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.kube.objects.pod import PodUID
from podstatus.status.decide.versioned_status import UnsentUpdate, VersionedStatus
from podstatus.status.ports import OutboxEntry
from podstatus.status.sync.outbox_writer import OutboxWriter
from podstatus.testing.clock import run_ready_tasks
from tests.status.sync.parallel_scene import SUCCEEDED, HangingOutbox
from tests.support.status_fleet import MemoryOutbox

pytestmark = pytest.mark.timeout(120)

A, B = PodUID("uid-a"), PodUID("uid-b")


def final_status(version: int) -> VersionedStatus:
    """Return the final status of pod a, with the version in its message."""
    return VersionedStatus(
        version=version,
        namespace="default",
        name="a",
        finished=True,
        status=structs.replace(SUCCEEDED, message=str(version)),
        unsent=(UnsentUpdate(version, 0),),
    )


class FaultyOutbox(MemoryOutbox):
    """Fails while `is_broken`; blocks on disk while `disk` is cleared."""

    def __init__(self) -> None:
        super().__init__()
        self.is_broken = False
        self.disk = threading.Event()
        self.disk.set()

    def store(self, entry: OutboxEntry) -> None:
        self._wait()
        super().store(entry)

    def drop(self, uid: PodUID) -> None:
        self._wait()
        super().drop(uid)

    def versions(self) -> dict[PodUID, int]:
        return {uid: int(entry.status.message) for uid, entry in self.kept.items()}

    def _wait(self) -> None:
        self.disk.wait(10)
        if self.is_broken:
            raise OSError("no disk")


async def test_an_entry_of_a_removed_pod_is_dropped_when_a_new_status_is_acknowledged() -> None:
    writer = OutboxWriter(outbox := FaultyOutbox())
    writer.put(A, final_status(9))
    await writer.write()
    writer.acknowledge(A, 1, final_status(1))  # the versions have restarted
    await writer.write()
    assert (outbox.kept, len(writer)) == ({}, 0)


@pytest.mark.parametrize(("acknowledged", "stored"), [(1, {A: 2}), (2, {}), (3, {})])
async def test_an_entry_stays_until_its_version_is_acknowledged(
    acknowledged: int, stored: dict[PodUID, int]
) -> None:
    writer = OutboxWriter(outbox := FaultyOutbox())
    writer.put(A, final_status(2))
    await writer.write()
    writer.acknowledge(A, acknowledged, final_status(3))
    await writer.write()
    assert outbox.versions() == stored


async def test_an_entry_that_arrives_during_its_removal_is_stored() -> None:
    writer = OutboxWriter(outbox := HangingOutbox())
    writer.put(A, final_status(1))
    await writer.write()
    writer.drop(A)
    writing = asyncio.create_task(writer.write())
    await run_ready_tasks()
    writer.put(A, final_status(2))
    outbox.disk.set()
    await writing
    assert [entry.status.message for entry in outbox.kept.values()] == ["2"]


async def test_an_entry_that_is_dropped_while_it_is_stored_is_removed() -> None:
    writer = OutboxWriter(outbox := FaultyOutbox())
    outbox.disk.clear()
    writer.put(A, final_status(1))
    writing = asyncio.create_task(writer.write())
    await run_ready_tasks()
    writer.drop(A)
    outbox.disk.set()
    await writing
    assert (outbox.kept, len(writer)) == ({}, 0)


async def test_a_caller_waits_until_the_newest_entry_is_on_disk() -> None:
    writer = OutboxWriter(outbox := FaultyOutbox())
    outbox.disk.clear()
    writer.put(A, final_status(1))
    writing = asyncio.create_task(writer.write())
    await run_ready_tasks()
    writer.put(A, final_status(2))
    waiting = asyncio.create_task(writer.wait_written(A))
    await run_ready_tasks()
    assert not waiting.done()
    outbox.disk.set()
    await waiting
    assert outbox.versions() == {A: 2}
    await writing


async def test_a_failed_attempt_releases_the_caller_and_is_retried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    writer = OutboxWriter(outbox := FaultyOutbox())
    outbox.is_broken = True
    writer.put(A, final_status(1))
    waiting = asyncio.create_task(writer.wait_written(A))
    await run_ready_tasks()
    await writer.write()
    await waiting
    assert "cannot store outbox entry, will retry: uid=uid-a" in caplog.text
    assert not writer.is_dirty  # until the next full sync
    await writer.wait_written(A)
    outbox.is_broken = False
    writer.retain_only({A})
    await writer.write()
    assert (outbox.versions(), writer.is_dirty) == ({A: 1}, False)


async def test_the_end_of_the_writer_releases_all_callers() -> None:
    writer = OutboxWriter(outbox := FaultyOutbox())
    outbox.disk.clear()
    writer.put(A, final_status(1))
    writing = asyncio.create_task(writer.write())
    waiting = asyncio.create_task(writer.wait_written(A))
    await run_ready_tasks()
    writing.cancel()
    await waiting
    outbox.disk.set()
    await writer.write()
    assert outbox.versions() == {A: 1}


async def test_a_caller_does_not_wait_for_an_entry_that_is_not_wanted_any_more() -> None:
    writer = OutboxWriter(MemoryOutbox())
    writer.put(A, final_status(1))
    waiting = asyncio.create_task(writer.wait_written(A))
    await run_ready_tasks()
    writer.drop(A)
    await waiting


OPERATION = st.one_of(
    st.tuples(st.just("put"), st.sampled_from([A, B])),
    st.tuples(st.just("drop"), st.sampled_from([A, B])),
    st.tuples(st.sampled_from(["write", "break", "repair", "retain"]), st.just(A)),
)


@given(st.lists(OPERATION, max_size=30))
def test_the_disk_becomes_equal_to_what_was_asked_for(operations: list[tuple[str, PodUID]]) -> None:
    async def scene() -> None:
        writer, model = OutboxWriter(outbox := FaultyOutbox()), dict[PodUID, int]()
        for version, (operation, uid) in enumerate(operations, 1):
            match operation:
                case "put":
                    writer.put(uid, final_status(version))
                    model[uid] = version
                case "drop":
                    writer.drop(uid)
                    model.pop(uid, None)
                case "retain":
                    writer.retain_only({A})
                    model.pop(B, None)
                case "write":
                    await writer.write()
                case _:
                    outbox.is_broken = operation == "break"
        outbox.is_broken = False
        writer.retain_only(set(model))
        await writer.write()
        assert (outbox.versions(), len(writer), writer.is_dirty) == (model, len(model), False)

    asyncio.run(scene())
