"""What all active pods hold, as a sum that is kept: equal to what adding all of them up gives."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.checkpoint.state import MemoryState
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.allocation import PodResourceInfo
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.pods.pod_manager import PodManager
from podstatus.workers.admission.resource_fit import Taken, taken_by
from podstatus.workers.allocation.allocations import Grants, ResourceBook, ResourceBooks
from podstatus.workers.allocation.request_totals import Occupancy
from podstatus.workers.lifecycle.pod_registry import Lives
from podstatus.workers.lifecycle.state_machine import Stage, begun

NAMES = ("a", "b")
GRANTS = ("promised", "settled", "granted", "in force", "gone", "kept")
STAGES = (Stage.SYNC, Stage.TERMINATING, Stage.TERMINATED, Stage.FINISHED)


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
    st.tuples(
        st.sampled_from(["promised", "settled", "granted", "in force", "gone", "kept"]), pods
    ),
)


class World:
    def __init__(self, books: ResourceBooks | None = None) -> None:
        self.lives = Lives(PodManager(), all_known=lambda: True)
        self.grants = Grants(books)
        self.occupancy = Occupancy(self.lives, self.grants)

    async def step(self, what: str, pod: Pod, stage: Stage | None = None) -> None:
        if stage is not None:
            self.lives.put(structs.replace(begun(pod, quiet=True), stage=stage))
        elif what == "promised":
            self.grants.promise(pod)
        elif what == "settled":
            await self.grants.settle(pod)
        elif what == "granted":
            await self.grants.grant(pod)
        elif what == "in force":
            await self.grants.put_in_force(pod, ["app"], whole=True)
        elif what == "gone":
            self.lives.forget(pod.uid)
        else:
            self.grants.keep([life.uid for life in self.lives.all()])

    def check(self) -> None:
        for name in NAMES:
            uid = asking(name, 0).uid
            others = [pod for pod in self.lives.active_pods() if pod.uid != uid]
            expected = taken_by(self.grants.held(pod).spec for pod in others)
            assert _plain(self.occupancy.beside(uid)) == _plain(expected)


def _plain(taken: Taken) -> tuple[int, dict[str, int], set[object]]:
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
        world.lives.put(begun(pod, quiet=True))
    assert _plain(world.occupancy.beside(asking("a", 0).uid)) == (
        1,
        {"cpu": 2000, "example.com/gpu": 1},
        set(taken_by([asking("b", 0, 80, 81).spec]).ports),
    )
    assert world.occupancy.beside(asking("c", 0).uid).pods == 2


def test_pods_that_were_there_before_count() -> None:
    lives = Lives(PodManager(), all_known=lambda: True)
    lives.put(begun(asking("a", 3), quiet=True))
    occupancy = Occupancy(lives, Grants())
    assert occupancy.beside(asking("b", 0).uid).amounts["cpu"] == 3000


def test_what_a_pod_gives_back_is_free_when_it_has_given_it_back() -> None:
    async def scenario() -> None:
        world = World()
        larger, smaller, asks = asking("a", 4), asking("a", 1), asking("b", 0).uid
        world.lives.put(begun(larger, quiet=True))
        await world.grants.settle(larger)
        world.lives.put(begun(smaller, quiet=True))
        await world.grants.grant(smaller)
        assert world.occupancy.beside(asks).amounts["cpu"] == 4000
        await world.grants.put_in_force(smaller, ["app"], whole=True)
        assert world.occupancy.beside(asks).amounts["cpu"] == 1000

    asyncio.run(scenario())


class Book:
    """Writes when somebody says so, or cannot."""

    def __init__(self, book: ResourceBook) -> None:
        self._book = book
        self.may_write = threading.Event()
        self.may_write.set()
        self.is_full = False

    def pod_resource_info(self, uid: str) -> PodResourceInfo | None:
        return self._book.pod_resource_info(uid)

    def set_pod_resource_info(self, uid: str, info: PodResourceInfo) -> None:
        self.set_pod_resource_infos({PodUID(uid): info})

    def set_pod_resource_infos(self, infos: Mapping[PodUID, PodResourceInfo]) -> None:
        self.may_write.wait(60)
        if self.is_full:
            raise OSError("no space left")
        self._book.set_pod_resource_infos(infos)


class Books:
    def __init__(self) -> None:
        state = MemoryState()
        self.allocated, self.actuated = Book(state.allocated), Book(state.actuated)


@pytest.mark.parametrize("book", ["actuated", "allocated"])
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1)])
def test_while_a_grant_is_written_the_larger_of_old_and_new_is_held(
    book: str, before: int, after: int
) -> None:
    async def scenario() -> None:
        world, asks = World(books := Books()), asking("b", 0).uid
        world.lives.put(begun(asking("a", before), quiet=True))
        await world.grants.settle(asking("a", before))
        assert world.occupancy.beside(asks).amounts["cpu"] == before * 1000
        slow: Book = getattr(books, book)
        slow.may_write.clear()
        writing = asyncio.create_task(world.grants.grant(asking("a", after)))
        for _ in range(20):
            await asyncio.sleep(0.001)
            assert world.occupancy.beside(asks).amounts["cpu"] == 3000
        slow.may_write.set()
        await writing
        assert world.occupancy.beside(asks).amounts["cpu"] == 3000

    asyncio.run(scenario())


def test_a_grant_that_cannot_be_written_is_none() -> None:
    async def scenario() -> None:
        world, asks = World(books := Books()), asking("b", 0).uid
        world.lives.put(begun(asking("a", 1), quiet=True))
        await world.grants.settle(asking("a", 1))
        books.actuated.is_full = True
        writing = asyncio.create_task(world.grants.grant(asking("a", 3)))
        await asyncio.sleep(0)
        assert world.occupancy.beside(asks).amounts["cpu"] == 3000
        with pytest.raises(OSError, match="no space"):
            await writing
        assert world.occupancy.beside(asks).amounts["cpu"] == 1000

    asyncio.run(scenario())


def test_a_promise_counts_until_it_is_forgotten() -> None:
    world, asks = World(), asking("b", 0).uid
    world.lives.put(begun(asking("a", 1), quiet=True))
    assert world.occupancy.beside(asks).amounts["cpu"] == 1000
    world.grants.promise(asking("a", 3))
    assert world.occupancy.beside(asks).amounts["cpu"] == 3000
    world.grants.keep([])
    assert world.occupancy.beside(asks).amounts["cpu"] == 1000
