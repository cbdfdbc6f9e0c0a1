"""A node that is busy all the time, and a server that is killed, cut off, paused and refuses.

After whatever went wrong: the server has what the node says, of every pod. No status was seen
after a newer one, nor one that the node never said, a mixture of two. Pods that were asked to go
are gone. What others wrote is still there. And no more was asked than the policy allows.

Most cases have no reconcile: what is lost would be sent again by it, and nobody would notice.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("aiohttp", reason="the client needs podstatus[agent]")

from podstatus.client.rest.http_transport import Timeouts
from podstatus.status.policy import ParallelSyncOptions, SyncPolicy
from podstatus.status.sync.state.circuit_breaker import PROBE_FRACTION
from tests.servers.clients.faulty_proxy import Asked, Fault, Refusal, Trouble
from tests.servers.clients.request_bounds import most_without_server, tries
from tests.servers.clients.sync_scene import REST_SECONDS, Scene, playing
from tests.support.loops import until
from tests.support.processes.api_servers import Server
from tests.support.processes.mortal_server import Mortal, mortal

pytestmark = pytest.mark.slow

AS_SHIPPED = SyncPolicy()
NO_RECONCILE = SyncPolicy(full_sync_period=3600)
SENDING = ParallelSyncOptions()
IMPATIENT = Timeouts(connect_seconds=1.0, total_seconds=3.0)
"""Long enough for answers of a real server on a busy machine."""
STORM_SECONDS = 2.0
OUTAGE_SECONDS = 60.0


@pytest.fixture(scope="module")
def one_process(each_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortal]:
    """For all cases: most of the time would go into starting them."""
    with mortal(each_server, tmp_path_factory.mktemp("mortal")) as process:
        yield process


@pytest.fixture
def process(one_process: Mortal) -> Iterator[Mortal]:
    """A server to be killed and paused."""
    yield one_process
    one_process.recover()


@asynccontextmanager
async def busy(
    process: Mortal,
    *,
    seed: int = 1,
    policy: SyncPolicy = NO_RECONCILE,
    timing: Timeouts | None = None,
    rest: float = REST_SECONDS,
    gives_up: bool = False,
) -> AsyncIterator[Scene]:
    """Let a node be busy while things go wrong, and see that all is well in the end.

    What is given up may arrive after something newer, until the reconcile undoes it.
    """
    async with playing(
        process.access, seed=seed, policy=policy, timing=timing, gives_up=gives_up
    ) as scene:
        await scene.arrive(100)
        yield scene
        scene.proxy.heal()
        await scene.go_on(100)
        await scene.come_to_rest(rest)
        scene.check()


def some(*faults: Fault, chance: random.Random) -> Callable[[Asked], Fault]:
    """Each of these now and then, in half of the requests."""
    return lambda _: chance.choice([*faults, *[None] * len(faults)])


async def test_without_faults_a_status_costs_one_request_at_most(process: Mortal) -> None:
    async with busy(process, policy=AS_SHIPPED) as scene:
        await scene.arrive(300)
        assert {asked.code for asked in scene.proxy.asked} <= {0, 200}


async def test_a_server_that_is_killed_and_comes_back(process: Mortal) -> None:
    async with busy(process) as scene:
        process.kill()
        began = time.monotonic()
        await scene.go_on(300)
        _check_outage(scene, began)
        await asyncio.to_thread(process.start)
        await _goes_full_width(scene)


def _check_outage(scene: Scene, began: float) -> None:
    ended = time.monotonic()
    asked = [asked for asked in scene.proxy.asked if asked.at >= began]
    assert 0 < len(asked) <= most_without_server(ended - began, SENDING)


async def _goes_full_width(scene: Scene) -> None:
    """The circuit is closed: more is under way than may be while a server is looked for."""
    scene.proxy.most_under_way = 0
    async with asyncio.timeout(REST_SECONDS):
        await until(lambda: scene.proxy.most_under_way > SENDING.in_flight // PROBE_FRACTION)


async def test_connections_that_are_cut_again_and_again(process: Mortal) -> None:
    async with busy(process) as scene:
        for _ in range(8):
            scene.proxy.cut()
            await scene.go_on(40)


async def test_a_server_that_stands_still_until_clients_give_up(process: Mortal) -> None:
    async with busy(process, policy=AS_SHIPPED, timing=IMPATIENT, gives_up=True) as scene:
        process.pause()
        began = time.monotonic()
        await until(lambda: time.monotonic() > began + 2 * IMPATIENT.total_seconds)
        _check_outage(scene, began)
        process.resume()
        await _goes_full_width(scene)


@pytest.mark.parametrize(
    ("refusal", "methods", "each"),
    [
        (Refusal(429), ("GET", "PATCH", "DELETE"), 1),
        (Refusal(429, retry_after=1), ("PATCH",), 1),
        (Refusal(409), ("PATCH",), 3),
        (Refusal(500), ("GET", "PATCH", "DELETE"), 1),
        (Refusal(500), ("PATCH",), 2),
    ],
    ids=["429", "429 with Retry-After", "409", "500", "500 to patches"],
)
async def test_a_storm_of_refusals_is_met_with_patience(
    process: Mortal, refusal: Refusal, methods: tuple[str, ...], each: int
) -> None:
    async with busy(process) as scene:
        made, began = scene.users.made.copy(), time.monotonic()
        scene.proxy.fault = lambda asked: refusal if asked.method in methods else None
        await until(lambda: time.monotonic() > began + STORM_SECONDS)
        seconds = time.monotonic() - began
        asked = Counter(asked.name for asked in scene.proxy.asked if asked.at > began)
        assert asked
        for name, count in asked.items():
            # A pod that was made anew begins anew.
            pods = 1 + scene.users.made[name] - made[name]
            assert count <= each * pods * tries(seconds, SENDING)
        if refusal.code == 500:
            assert asked.total() <= each * most_without_server(seconds, SENDING)
            scene.proxy.heal()
            await _goes_full_width(scene)


async def test_answers_that_are_lost_on_their_way(process: Mortal) -> None:
    async with busy(process) as scene:
        scene.proxy.fault = some(Trouble.LOSE, Trouble.CUT, chance=random.Random(2))
        await scene.go_on(600)


async def test_a_clock_that_is_set_ahead_and_back(process: Mortal) -> None:
    async with busy(process) as scene:
        scene.proxy.fault = some(Refusal(500), Refusal(429), chance=random.Random(3))
        for ahead in (3600.0, -3600.0, 0.0, -86400.0):
            scene.set_clock(ahead)
            await scene.go_on(150)


async def test_a_sync_that_is_cancelled_and_run_again(process: Mortal) -> None:
    async with busy(process) as scene:
        for _ in range(10):
            await scene.go_on(20)
            await scene.restart()


@pytest.mark.parametrize("seed", range(2))
async def test_all_of_it_in_any_order(process: Mortal, seed: int) -> None:
    chance = random.Random(seed)
    async with busy(process, seed=seed, policy=AS_SHIPPED) as scene:
        scene.proxy.fault = some(
            *(Refusal(code) for code in (409, 429, 500)), Trouble.CUT, Trouble.LOSE, chance=chance
        )
        for _ in range(10):
            await scene.go_on(50)
            match chance.choice(["cut", "clock", "restart", "pause"]):
                case "cut":
                    scene.proxy.cut()
                case "clock":
                    scene.set_clock(chance.uniform(-3600, 3600))
                case "restart":
                    await scene.restart()
                case "pause":
                    process.pause()
                    await scene.go_on(30)
                    process.resume()


async def test_a_patch_that_arrives_after_a_newer_one_is_undone_by_the_reconcile(
    process: Mortal,
) -> None:
    delayed: list[Asked] = []

    def delay_one(asked: Asked) -> Fault:
        if delayed or asked.method != "PATCH":
            return None
        delayed.append(asked)
        return Trouble.DELAY

    async with asyncio.timeout(280):
        async with playing(
            process.access, seed=1, policy=AS_SHIPPED, pods=1, users_work=False
        ) as scene:
            await scene.arrive(3)
            scene.proxy.fault = delay_one
            await until(lambda: bool(delayed))
            await scene.arrive(3)
            await scene.come_to_rest()
            assert not scene.witness.overtaken
            scene.proxy.release()
            await until(lambda: bool(scene.witness.overtaken))
            await scene.come_to_rest(AS_SHIPPED.full_sync_period + REST_SECONDS)


@pytest.mark.long
@pytest.mark.parametrize("how", ["killed", "paused"])
async def test_an_outage_of_a_minute(process: Mortal, how: str) -> None:
    async with busy(process, policy=AS_SHIPPED, rest=120, gives_up=how == "paused") as scene:
        stop, go_on = {
            "killed": (process.kill, process.start),
            "paused": (process.pause, process.resume),
        }[how]
        stop()
        began = time.monotonic()
        await until(lambda: time.monotonic() > began + OUTAGE_SECONDS)
        _check_outage(scene, began)
        await asyncio.to_thread(go_on)
        await _goes_full_width(scene)
