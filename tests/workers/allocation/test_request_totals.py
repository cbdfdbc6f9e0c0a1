"""The incremental sum of all active pods equals the sum computed from scratch."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.checkpoint.allocation_checkpoint import MemoryState
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod
from podstatus.pods.pod_manager import PodManager
from podstatus.workers.admission.resource_fit import RequestedResources, sum_requests
from podstatus.workers.allocation.allocations import (
    AllocationManager,
    AllocationStore,
)
from podstatus.workers.allocation.request_totals import RequestTotals
from podstatus.workers.lifecycle.pod_registry import NoDynamicResources, PodRegistry
from podstatus.workers.lifecycle.state_machine import PodWorkerState, admitted
from tests.workers.allocation.books import Book, Books

NAMES = ("a", "b")
GRANTS = ("promised", "settled", "granted", "in force", "gone", "kept")
STAGES = (
    PodWorkerState.SYNC,
    PodWorkerState.TERMINATING,
    PodWorkerState.TERMINATED,
    PodWorkerState.FINISHED,
)


def asking(name: str, cpu: int, *ports: int) -> Pod:
    container: dict[str, Any] = {
        "name": "app",
        "resources": {"requests": {"cpu": str(cpu), "example.com/gpu": "1"}},
        "ports": [{"hostPort": port} for port in ports],
    }
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
    return from_document({"metadata": metadata, "spec": {"containers": [container]}}, Pod)


pods = st.builds(
    lambda name, cpu, ports: asking(name, cpu, *ports),
    st.sampled_from(NAMES),
    st.integers(0, 4),
    st.lists(st.sampled_from([80, 81]), max_size=2),
)
steps = st.one_of(
    st.tuples(st.just("lives"), pods, st.sampled_from(STAGES)),
    st.tuples(st.sampled_from(GRANTS), pods),
)


class World:
    def __init__(self, books: AllocationStore | None = None) -> None:
        self.lives = PodRegistry(
            PodManager(), all_sources_ready=lambda: True, dynamic_resources=NoDynamicResources()
        )
        self.grants = AllocationManager(books or MemoryState())
        self.occupancy = RequestTotals(self.lives, self.grants)

    async def step(self, what: str, pod: Pod, stage: PodWorkerState | None = None) -> None:
        if stage is not None:
            self.lives.put(structs.replace(admitted(pod, idle=True), state=stage))
        elif what == "promised":
            self.grants.reserve(pod)
        elif what == "settled":
            await self.grants.persist(pod)
        elif what == "granted":
            await self.grants.allocate(pod)
        elif what == "in force":
            await self.grants.set_actuated(pod, ["app"], pod_level=True)
        elif what == "gone":
            self.lives.forget(pod.uid)
        else:
            self.grants.retain_only([life.uid for life in self.lives.all()])

    def check(self) -> None:
        for name in NAMES:
            uid = asking(name, 0).uid
            others = [pod for pod in self.lives.active_pods() if pod.uid != uid]
            expected = sum_requests(self.grants.reserved(pod).spec for pod in others)
            assert _plain(self.occupancy.excluding(uid)) == _plain(expected)


def _plain(taken: RequestedResources) -> tuple[int, dict[str, int], set[object]]:
    amounts = {name: amount for name, amount in taken.amounts.items() if amount}
    return taken.pods, amounts, set(taken.ports)


@given(st.lists(steps, max_size=25))
def test_whatever_happens_to_pods_the_sum_is_what_adding_them_up_gives(
    story: list[tuple[Any, ...]],
) -> None:
    async def tell() -> None:
        world = World()
        for step in story:
            await world.step(*step)
            world.check()

    asyncio.run(tell())


def test_who_asks_is_not_beside_itself() -> None:
    world = World()
    for pod in (asking("a", 1, 80), asking("b", 2, 80, 81)):
        world.lives.put(admitted(pod, idle=True))
    assert _plain(world.occupancy.excluding(asking("a", 0).uid)) == (
        1,
        {"cpu": 2000, "example.com/gpu": 1},
        set(sum_requests([asking("b", 0, 80, 81).spec]).ports),
    )
    assert world.occupancy.excluding(asking("c", 0).uid).pods == 2


def test_pods_that_were_there_before_count() -> None:
    lives = PodRegistry(
        PodManager(), all_sources_ready=lambda: True, dynamic_resources=NoDynamicResources()
    )
    lives.put(admitted(asking("a", 3), idle=True))
    occupancy = RequestTotals(lives, AllocationManager(MemoryState()))
    assert occupancy.excluding(asking("b", 0).uid).amounts["cpu"] == 3000


async def test_what_a_pod_gives_back_is_free_when_it_has_given_it_back() -> None:
    world = World()
    larger, smaller, asks = asking("a", 4), asking("a", 1), asking("b", 0).uid
    world.lives.put(admitted(larger, idle=True))
    await world.grants.persist(larger)
    world.lives.put(admitted(smaller, idle=True))
    await world.grants.allocate(smaller)
    assert world.occupancy.excluding(asks).amounts["cpu"] == 4000
    await world.grants.set_actuated(smaller, ["app"], pod_level=True)
    assert world.occupancy.excluding(asks).amounts["cpu"] == 1000


@pytest.mark.parametrize("book", ["actuated", "allocated"])
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1)])
async def test_while_a_grant_is_written_the_larger_of_old_and_new_is_held(
    book: str, before: int, after: int
) -> None:
    world, asks = World(books := Books()), asking("b", 0).uid
    world.lives.put(admitted(asking("a", before), idle=True))
    await world.grants.persist(asking("a", before))
    assert world.occupancy.excluding(asks).amounts["cpu"] == before * 1000
    slow: Book = getattr(books, book)
    slow.may_write.clear()
    writing = asyncio.create_task(world.grants.allocate(asking("a", after)))
    for _ in range(20):
        await asyncio.sleep(0.001)
        assert world.occupancy.excluding(asks).amounts["cpu"] == 3000
    slow.may_write.set()
    await writing
    assert world.occupancy.excluding(asks).amounts["cpu"] == 3000


async def test_a_grant_that_cannot_be_written_is_none() -> None:
    world, asks = World(books := Books()), asking("b", 0).uid
    world.lives.put(admitted(asking("a", 1), idle=True))
    await world.grants.persist(asking("a", 1))
    books.actuated.is_full = True
    writing = asyncio.create_task(world.grants.allocate(asking("a", 3)))
    await asyncio.sleep(0)
    assert world.occupancy.excluding(asks).amounts["cpu"] == 3000
    with pytest.raises(OSError, match="no space"):
        await writing
    assert world.occupancy.excluding(asks).amounts["cpu"] == 1000


def test_a_promise_counts_until_it_is_forgotten() -> None:
    world, asks = World(), asking("b", 0).uid
    world.lives.put(admitted(asking("a", 1), idle=True))
    assert world.occupancy.excluding(asks).amounts["cpu"] == 1000
    world.grants.reserve(asking("a", 3))
    assert world.occupancy.excluding(asks).amounts["cpu"] == 3000
    world.grants.retain_only([])
    assert world.occupancy.excluding(asks).amounts["cpu"] == 1000
