"""Allocated and actuated resources: the order of writes, and the reserved amounts."""

import asyncio
from typing import cast

import pytest

from podstatus.checkpoint.allocation_checkpoint import MemoryState
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.workers.allocation.allocations import AllocationManager
from tests.support.node_in_memory import a_pod, asking
from tests.workers.allocation.books import Book, Books

UID = PodUID("uid-p")


def cpu_of(pod: Pod) -> str:
    (container,) = pod.spec.containers or ()
    return str((container.resources.requests or {})["cpu"])


def p(cpu: str) -> Pod:
    return asking(a_pod("p"), cpu)


async def test_what_is_in_force_is_written_before_another_grant() -> None:
    books = Books()
    grants = AllocationManager(books)
    await grants.persist(p("1"))
    await grants.allocate(p("2"))
    assert books.written == ["allocated=1", "actuated=1", "allocated=2"]
    await grants.allocate(p("3"))
    assert books.written[3:] == ["allocated=3"]
    await grants.set_actuated(p("3"), ["a"])
    await grants.set_actuated(p("3"), ["a"])
    assert books.written[4:] == ["actuated=3"]


@pytest.mark.parametrize("full", ["allocated", "actuated"])
async def test_a_grant_that_cannot_be_written_is_none(full: str) -> None:
    books = Books()
    grants = AllocationManager(books)
    await grants.persist(p("1"))
    cast(Book, getattr(books, full)).is_full = True
    with pytest.raises(OSError, match="no space left"):
        await grants.allocate(p("2"))
    assert cpu_of(grants.allocated(p("2"))) == "1"
    assert cpu_of(grants.reserved(p("2"))) == "1"


async def test_a_pod_that_was_never_resized_has_one_entry() -> None:
    books = Books()
    grants = AllocationManager(books)
    await grants.persist(p("1"))
    await grants.set_actuated(p("1"), ["a"])
    assert (books.written, grants.actuated(UID)) == (["allocated=1"], None)


async def test_a_promise_counts_and_not_what_is_asked_for_later() -> None:
    grants = AllocationManager(MemoryState())
    grants.reserve(p("1"))
    assert cpu_of(grants.allocated(p("9"))) == "1"
    await grants.persist(p("9"))
    assert cpu_of(grants.persisted(p("9"))) == "1"
    grants.reserve(p("5"))
    assert cpu_of(grants.allocated(p("9"))) == "1"


async def test_what_is_being_granted_counts_before_it_is_written() -> None:
    grants = AllocationManager(MemoryState())
    await grants.persist(p("1"))
    granting = asyncio.create_task(grants.allocate(p("2")))
    await asyncio.sleep(0)
    assert (cpu_of(grants.reserved(p("2"))), cpu_of(grants.persisted(p("2")))) == ("2", "1")
    await granting
    assert cpu_of(grants.persisted(p("2"))) == "2"


async def test_what_was_not_given_back_is_held() -> None:
    grants = AllocationManager(MemoryState())
    await grants.persist(p("3"))
    await grants.allocate(p("1"))
    assert (cpu_of(grants.allocated(p("1"))), cpu_of(grants.reserved(p("1")))) == ("1", "3")
    await grants.set_actuated(p("1"), ["a"])
    assert cpu_of(grants.reserved(p("1"))) == "1"


async def test_a_first_grant_and_a_resize_at_once_end_with_the_resize() -> None:
    grants = AllocationManager(MemoryState())
    grants.reserve(p("1"))
    settling = asyncio.create_task(grants.persist(p("2")))
    await asyncio.sleep(0)
    granting = asyncio.create_task(grants.allocate(p("2")))
    await settling
    assert (cpu_of(grants.persisted(p("2"))), cpu_of(grants.allocated(p("2")))) == ("1", "2")
    await granting
    assert cpu_of(grants.persisted(p("2"))) == "2"


async def test_the_grants_of_all_who_wait_are_written_at_once() -> None:
    books, pods = Books(), [asking(a_pod(f"p{number}"), "1") for number in range(100)]
    grants = AllocationManager(books)
    await asyncio.gather(*map(grants.persist, pods))
    assert all(books.allocated.pod_resource_info(pod.uid) for pod in pods)
    assert books.allocated.writes == 2, "the first, and those that came meanwhile"


async def test_a_failed_write_is_raised_to_all_waiting_callers_and_can_be_retried() -> None:
    books, pods = Books(), [asking(a_pod(f"p{number}"), "1") for number in range(5)]
    grants = AllocationManager(books)
    books.allocated.is_full = True
    results = await asyncio.gather(*map(grants.persist, pods), return_exceptions=True)
    assert [type(result) for result in results] == [OSError] * 5
    books.allocated.is_full = False
    await grants.persist(pods[3])
    settled = [pod for pod in pods if books.allocated.pod_resource_info(pod.uid)]
    assert settled == [pods[3]], "no caller waits for the others any more"


async def test_a_second_caller_for_the_same_pod_gets_the_write_or_the_error() -> None:
    books = Books()
    grants = AllocationManager(books)
    books.allocated.fails = 1
    first, second = await asyncio.gather(
        grants.persist(p("1")), grants.persist(p("1")), return_exceptions=True
    )
    assert (type(first), second) == (OSError, None)
    assert books.written == ["allocated=1"]


async def test_who_was_never_resized_does_not_wait_for_those_who_write() -> None:
    books = Books()
    grants = AllocationManager(books)
    await grants.persist(p("1"))
    books.allocated.may_write.clear()
    writing = asyncio.create_task(grants.persist(asking(a_pod("q"), "1")))
    try:
        await asyncio.to_thread(books.allocated.is_writing.wait, 60)
        async with asyncio.timeout(60):
            await grants.set_actuated(p("1"), ["a"])
        assert not writing.done()
    finally:
        books.allocated.may_write.set()
    await writing


async def test_promises_to_pods_that_left_are_forgotten() -> None:
    grants = AllocationManager(MemoryState())
    grants.reserve(p("1"))
    grants.retain_only({UID})
    assert cpu_of(grants.allocated(p("9"))) == "1"
    grants.retain_only(set())
    assert cpu_of(grants.allocated(p("9"))) == "9"
