import pytest

from podstatus.base.service_heartbeats import Heartbeats
from podstatus.base.system_time import boottime_ns
from podstatus.testing.clock import FakeClock


def test_a_service_is_alive_from_its_registration_on() -> None:
    heartbeats = Heartbeats(FakeClock())
    heartbeats.register("relist", max_silent_seconds=3)
    assert heartbeats.stalled() == []


async def test_a_silent_service_is_named_with_how_long_it_was_silent() -> None:
    clock = FakeClock()
    heartbeats = Heartbeats(clock)
    heartbeats.register("quiet", max_silent_seconds=3)
    beat = heartbeats.register("lively", max_silent_seconds=3)

    for _ in range(2):
        await clock.advance(2)
        beat()
    (stalled,) = heartbeats.stalled()
    assert str(stalled) == "quiet was last active 4 s ago; threshold is 3 s"
    assert heartbeats.find_stalled("lively") is None


async def test_the_last_moment_of_its_time_is_still_in_time() -> None:
    clock = FakeClock()
    heartbeats = Heartbeats(clock)
    heartbeats.register("relist", max_silent_seconds=3)
    await clock.advance(3)
    assert heartbeats.stalled() == []


def test_an_unregistered_service_raises_key_error() -> None:
    with pytest.raises(KeyError):
        Heartbeats(FakeClock()).find_stalled("relist")


@pytest.mark.parametrize("knows_sleep", [True, False])
def test_the_monotonic_clock_continues_when_the_wall_clock_is_set(
    monkeypatch: pytest.MonkeyPatch, knows_sleep: bool
) -> None:
    if not knows_sleep:
        monkeypatch.delattr("time.CLOCK_BOOTTIME", raising=False)
    before = boottime_ns()
    monkeypatch.setattr("time.time_ns", lambda: 0)
    assert 0 <= boottime_ns() - before < 3600 * 10**9


async def test_a_stalled_service_says_whether_it_is_vital() -> None:
    clock = FakeClock()
    heartbeats = Heartbeats(clock)
    heartbeats.register("extra", max_silent_seconds=3, is_vital=False)
    heartbeats.register("vital", max_silent_seconds=3)
    await clock.advance(4)
    assert {it.name: it.is_vital for it in heartbeats.stalled()} == {"extra": False, "vital": True}
