"""Leader election in virtual time: one leads at a time, whatever fails."""

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from podstatus.client.leaderelection.decide.election_lease import ElectionConfig, timing_errors
from podstatus.client.leaderelection.elector import LeaderElector
from podstatus.kube.api_errors import UnavailableError
from podstatus.kube.objects.cluster import Lease, LeaseSpec
from podstatus.kube.scalars.time import MicroTime
from podstatus.testing.clock import FakeClock
from tests.support.in_memory_node_api import InMemoryNodeApi

NAMESPACE, NAME = "podstatus", "observer"


class Reach:
    """A candidate's connection to the API server, which can be cut or hang."""

    def __init__(self, api: InMemoryNodeApi) -> None:
        self._api = api
        self.is_cut = False
        self.hangs = False
        self.loses_responses = False

    async def get_lease(self, namespace: str, name: str) -> Lease:
        await self._pass()
        return await self._api.get_lease(namespace, name)

    async def create_lease(self, lease: Lease) -> Lease:
        await self._pass()
        return await self._api.create_lease(lease)

    async def replace_lease(self, lease: Lease) -> Lease:
        await self._pass()
        replaced = await self._api.replace_lease(lease)
        if self.loses_responses:
            await asyncio.Event().wait()
        return replaced

    async def _pass(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.is_cut:
            raise UnavailableError("the cable is cut")


class Candidate:
    def __init__(self, scene: "Scene", name: str, *, seed: int) -> None:
        self.name = name
        self.reach = Reach(scene.api)
        self.changes: list[str] = []
        self.elector = LeaderElector(
            self.reach,
            structs.replace(scene.config, identity=name),
            clock=scene.clock,
            random=random.Random(seed).random,
            on_started_leading=lambda: self.changes.append("started"),
            on_stopped_leading=lambda: self.changes.append("stopped"),
        )
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self.elector.run())

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})

    def kill(self) -> None:
        """Stop it without a word: nothing that it sends arrives any more."""
        self.reach.is_cut = True
        assert self._task is not None
        self._task.cancel()


class Scene:
    def __init__(self, *names: str) -> None:
        self.clock = FakeClock(rounds=20)
        self.api = InMemoryNodeApi()
        self.config = ElectionConfig(identity="", namespace=NAMESPACE, name=NAME)
        self.candidates = {
            name: Candidate(self, name, seed=number) for number, name in enumerate(names)
        }

    def leaders(self) -> list[str]:
        return [it.name for it in self.candidates.values() if it.elector.is_leading]

    @property
    def spec(self) -> LeaseSpec:
        return self.api.leases[NAME].spec

    async def passes(self, seconds: float) -> None:
        await self.clock.advance(seconds)


async def start(*names: str) -> Scene:
    """A scene in which the first of them leads."""
    scene = Scene(*names)
    for candidate in scene.candidates.values():
        candidate.start()
        await scene.passes(0)
    return scene


async def test_the_first_leads_and_renews_the_lease() -> None:
    scene = await start("a", "b")
    assert scene.leaders() == ["a"]
    first = scene.spec
    assert (first.holder_identity, first.lease_duration_seconds) == ("a", 15)
    assert first.lease_transitions == 0
    await scene.passes(100)
    assert scene.leaders() == ["a"]
    renewed = scene.spec
    assert renewed.acquire_time == first.acquire_time
    assert renewed.renew_time is not None
    assert scene.clock.now() - renewed.renew_time.unix_nanos() <= 2e9
    assert (scene.candidates["b"].elector.holder, scene.candidates["b"].changes) == ("a", [])


async def test_another_leads_when_the_lease_was_not_renewed_for_its_duration() -> None:
    scene = await start("a", "b")
    await scene.passes(60)
    scene.candidates["a"].kill()
    await scene.passes(14.9)
    assert scene.candidates["b"].changes == []
    await scene.passes(2 + 2 * 4.4)
    assert scene.leaders() == ["b"]
    assert (scene.spec.holder_identity, scene.spec.lease_transitions) == ("b", 1)


async def test_another_leads_at_once_after_an_orderly_stop() -> None:
    scene = await start("a", "b")
    await scene.passes(60)
    await scene.candidates["a"].stop()
    assert scene.candidates["a"].changes == ["started", "stopped"]
    assert (scene.spec.holder_identity, scene.spec.lease_duration_seconds) == ("", 1)
    await scene.passes(4.4)
    assert scene.leaders() == ["b"]
    assert scene.spec.lease_transitions == 1


async def test_a_lease_is_released_although_a_renewal_was_in_flight() -> None:
    scene = await start("a", "b")
    reach = scene.candidates["a"].reach
    reach.loses_responses = True
    await scene.passes(2)
    reach.loses_responses = False
    await scene.candidates["a"].stop()
    assert scene.spec.holder_identity == ""
    await scene.passes(4.4)
    assert scene.leaders() == ["b"]


@pytest.mark.parametrize("failure", ["is_cut", "hangs"])
async def test_a_leader_without_the_server_stops_before_another_starts(failure: str) -> None:
    scene = await start("a", "b")
    a, b = scene.candidates["a"], scene.candidates["b"]
    await scene.passes(60)
    setattr(a.reach, failure, True)
    for _ in range(250):
        await scene.passes(0.1)
        assert len(scene.leaders()) <= 1
        if b.elector.is_leading:
            assert a.changes == ["started", "stopped"]
    assert scene.leaders() == ["b"]
    setattr(a.reach, failure, False)
    await scene.passes(30)
    assert scene.leaders() == ["b"]
    assert a.elector.holder == "b"


async def test_a_leader_stops_within_the_renew_deadline() -> None:
    scene = await start("a")
    a = scene.candidates["a"]
    await scene.passes(60)
    a.reach.hangs = True
    await scene.passes(7.9)
    assert scene.leaders() == ["a"]
    await scene.passes(2.2)
    assert scene.leaders() == []
    assert a.changes == ["started", "stopped"]


async def test_a_short_outage_changes_nothing() -> None:
    scene = await start("a", "b")
    a = scene.candidates["a"]
    for _ in range(5):
        a.reach.is_cut = True
        await scene.passes(7)
        a.reach.is_cut = False
        await scene.passes(5)
    assert scene.leaders() == ["a"]
    assert (a.changes, scene.candidates["b"].changes) == (["started"], [])


async def test_a_leader_that_was_suspended_does_not_lead_until_it_has_renewed() -> None:
    scene = Scene("a")
    a = scene.candidates["a"]
    assert await a.elector.try_once()
    await scene.passes(11)
    assert not a.elector.is_leading
    a.reach.is_cut = True
    assert not await a.elector.try_once()
    assert a.changes == ["started", "stopped"]


async def test_the_wall_clocks_of_machines_do_not_matter() -> None:
    scene = await start("a", "b")
    for seconds in (864_000, -2 * 864_000):
        scene.clock.step(seconds)
        await scene.passes(60)
        assert scene.leaders() == ["a"]
    far = MicroTime.parse("2200-01-01T00:00:00.000000Z")
    await scene.candidates["a"].stop()
    await scene.candidates["b"].stop()
    spec = structs.replace(
        scene.spec, holder_identity="c", renew_time=far, lease_duration_seconds=15
    )
    lease = await scene.api.get_lease(NAMESPACE, NAME)
    await scene.api.replace_lease(structs.replace(lease, spec=spec))
    scene.candidates["b"].start()
    await scene.passes(14)
    assert scene.leaders() == []
    await scene.passes(2 + 4.4)
    assert scene.leaders() == ["b"]


async def test_a_leader_whose_lease_was_given_to_another_stops() -> None:
    scene = await start("a")
    lease = await scene.api.get_lease(NAMESPACE, NAME)
    await scene.api.replace_lease(
        structs.replace(lease, spec=structs.replace(lease.spec, holder_identity="c"))
    )
    await scene.passes(2.1)
    assert scene.leaders() == []
    assert scene.candidates["a"].elector.holder == "c"


async def test_a_deleted_lease_is_created_again() -> None:
    scene = await start("a", "b")
    scene.api.leases.clear()
    await scene.passes(20)
    assert len(scene.leaders()) == 1


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.sampled_from(["is_cut", "hangs"]),
            st.booleans(),
            st.floats(0.1, 20.0),
        ),
        max_size=12,
    )
)
def test_two_never_lead_at_once(faults: list[tuple[str, str, bool, float]]) -> None:
    async def play() -> None:
        scene = await start("a", "b", "c")
        for name, failure, is_on, seconds in faults:
            setattr(scene.candidates[name].reach, failure, is_on)
            for _ in range(int(seconds * 2)):
                await scene.passes(0.5)
                assert len(scene.leaders()) <= 1
        for candidate in scene.candidates.values():
            candidate.reach.is_cut = candidate.reach.hangs = False
        await scene.passes(40)
        assert len(scene.leaders()) == 1
        for candidate in scene.candidates.values():
            await candidate.stop()

    asyncio.run(asyncio.wait_for(play(), 60))


@pytest.mark.parametrize(
    ("lease", "renew", "retry", "count"),
    [(15, 10, 2, 0), (10, 10, 2, 1), (15, 2.4, 2, 1), (15, 2.5, 2, 0), (2, 3, 3, 2)],
)
def test_timing_is_checked_as_upstream_does(
    lease: float, renew: float, retry: float, count: int
) -> None:
    errors = timing_errors(lease_duration=lease, renew_deadline=renew, retry_period=retry)
    assert len(list(errors)) == count
