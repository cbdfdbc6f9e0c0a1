"""When the API server fails every request: the request rate, and which pods are affected.

After a failure a pod waits for 1 s, 2 s, 4 s and so on, less up to a half: it is tried at most
7 times in the first minute and twice in each later one. A try takes 3 requests at most.
"""

import random
from collections import Counter

import pytest

from podstatus.status.policy import SyncPolicy
from tests.support.status_fleet import READY, RUNNING, Fleet

pytestmark = pytest.mark.timeout(120)

FIRST_MINUTE = 7 * 3
"""Requests per pod."""
LATER_MINUTES = 2 * 3
FOREVER = 10_000


def storm(fleet: Fleet, *codes: int, verbs: tuple[str, ...] = ("get", "patch", "delete")) -> None:
    """Let every call fail with these codes in turn."""
    for pod in fleet.pods:
        for verb in verbs:
            for code in codes * (FOREVER // len(codes)):
                fleet.api.fail(verb, "default", pod.name, code=code)


@pytest.fixture
def _shortest_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the jitter so that every back-off is as short as possible."""
    monkeypatch.setattr(random, "random", lambda: 1.0)


async def requests_per_minute(fleet: Fleet, minutes: int, *, changing: bool) -> list[int]:
    """Return the maximum number of requests per pod, for each minute."""
    most = []
    for minute in range(minutes):
        for second in range(60):
            for pod in fleet.pods:
                if changing or minute == second == 0:
                    fleet.set(pod, f"{minute}:{second}", READY if second % 2 else RUNNING)
            await fleet.clock.advance(1)
        most.append(max(Counter(call.name for call in fleet.api.calls).values(), default=0))
        fleet.api.calls.clear()
    return most


@pytest.mark.parametrize("changing", [False, True], ids=["still", "changing"])
@pytest.mark.parametrize(
    ("codes", "verbs"),
    [
        ((404,), ("get", "patch")),
        ((409,), ("get", "patch")),
        ((409,), ("patch",)),
        ((422,), ("patch",)),
        ((429,), ("get", "patch")),
        ((429,), ("patch",)),
        ((403,), ("patch",)),
        ((500,), ("get", "patch")),
        ((500,), ("patch",)),
        ((409, 422, 429), ("patch",)),
        ((500, 404), ("get", "patch")),
    ],
    ids=str,
)
@pytest.mark.usefixtures("_shortest_waits")
async def test_requests_per_pod_and_minute_stay_under_the_bound(
    codes: tuple[int, ...], verbs: tuple[str, ...], *, changing: bool
) -> None:
    fleet = Fleet(["a", "b", "c"], rounds=6)
    storm(fleet, *codes, verbs=verbs)
    async with fleet.running():
        first, *later = await requests_per_minute(fleet, 5, changing=changing)
    assert 0 < first <= FIRST_MINUTE
    assert max(later) <= LATER_MINUTES


async def test_upstreams_policy_has_no_such_bound() -> None:
    fleet = Fleet(["a"], policy=SyncPolicy.upstream(), rounds=6)
    storm(fleet, 409, verbs=("patch",))
    async with fleet.running():
        minutes = await requests_per_minute(fleet, 2, changing=True)
    assert minutes[1] >= 120


@pytest.mark.usefixtures("_shortest_waits")
async def test_a_healthy_pod_does_not_spur_on_those_that_the_server_fails() -> None:
    fleet = Fleet(["healthy", *map(str, range(60))], rounds=6)
    healthy, *sick = fleet.pods
    for pod in sick:
        fleet.api.fail("patch", "default", pod.name, code=500, times=FOREVER)
    async with fleet.running():
        for pod in sick:
            fleet.set(pod, "sick")
        for tick in range(600):
            await fleet.set_and_wait(healthy, str(tick), seconds=0.1)
        calls = Counter(call.name for call in fleet.api.calls if call.name != "healthy")
        # A failed probe is retried once the server responds, so up to twice as often.
        assert max(calls.values()) <= 2 * FIRST_MINUTE
        assert fleet.message(healthy) == "599"


@pytest.mark.parametrize("code", [404, 409, 422, 429])
async def test_pods_in_quarantine_do_not_slow_the_others(code: int) -> None:
    round_trip = 0.05
    fleet = Fleet([*map(str, range(100)), "well"], round_trip=round_trip, rounds=6)
    *sick, well = fleet.pods
    for pod in sick:
        fleet.api.fail("patch", "default", pod.name, code=code, times=FOREVER)
    async with fleet.running():
        for pod in sick:
            fleet.set(pod, "sick")
        await fleet.clock.advance(60)
        for pod in sick:
            fleet.set(pod, "sick, and said so again")
        await fleet.clock.advance(1)  # a rejected status is sent once more when it changes
        for turn in range(20):
            for pod in sick:
                fleet.set(pod, f"sick {turn}")
            await fleet.set_and_wait(well, f"well {turn}", seconds=2 * round_trip)
            assert fleet.message(well) == f"well {turn}"


async def test_who_failed_together_does_not_come_back_together() -> None:
    random.seed(6)
    fleet = Fleet(map(str, range(64)), rounds=6)
    for pod in fleet.pods:
        fleet.api.fail("patch", "default", pod.name, code=429, times=3)
    async with fleet.running():
        for pod in fleet.pods:
            fleet.set(pod, "x")
        await fleet.clock.advance(30)
    moments = Counter(round(at - fleet.api.times[0][0], 2) for at, _, _ in fleet.api.times[64:])
    assert max(moments.values()) <= 10


async def test_pods_whose_patches_the_server_fails_do_not_slow_the_others() -> None:
    """As with a failing webhook: reads succeed, patches of these pods fail with 500."""
    fleet = Fleet([*map(str, range(300)), "well"], round_trip=0.01, rounds=6)
    *sick, well = fleet.pods
    for pod in sick:
        fleet.api.fail("patch", "default", pod.name, code=500, times=1000)
    async with fleet.running():
        for pod in sick:
            fleet.set(pod, "sick")
        await fleet.clock.advance(0.2)
        for turn in range(3):
            await fleet.set_and_wait(well, f"well {turn}", seconds=5)
            assert fleet.message(well) == f"well {turn}"
        await fleet.clock.advance(45)
    calls = Counter(call.name for call in fleet.api.calls if call.name != "well")
    assert max(calls.values()) <= FIRST_MINUTE
