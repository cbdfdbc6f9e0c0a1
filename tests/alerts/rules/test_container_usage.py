"""Usage facts of containers, and how seldom they cause an evaluation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.alerts.rules.container_usage import (
    DEADBAND,
    THROTTLING_WINDOW_NANOS,
    ContainerLoad,
    ContainerLoads,
    ThrottlingWindow,
)
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import CpuThrottling, MemoryUsage, Usage

SECOND = 1_000_000_000
PERIOD = 10 * SECOND
WEB, DB = PodUID("web"), PodUID("db")


def used(
    fraction: float | None = None, *, throttling: tuple[int, int] | None = None, limit: int = 1000
) -> Usage:
    """A container that uses this fraction of its memory limit."""
    if fraction is None:
        return Usage(at=0, memory_bytes=5, throttling=throttling and CpuThrottling(*throttling))
    return Usage(
        at=0,
        memory_bytes=round(fraction * limit),
        memory=MemoryUsage(limit_bytes=limit),
        throttling=throttling and CpuThrottling(*throttling),
    )


def memory(loads: ContainerLoads, uid: PodUID = WEB) -> dict[str, float | None]:
    return {name: it.memory_used_fraction for name, it in loads.evaluate(uid).items()}


def test_memory_is_related_to_its_limit() -> None:
    loads = ContainerLoads()
    assert loads.update({WEB: {"app": used(0.5), "free": used()}, DB: {"app": used()}}, 0) == [WEB]
    assert memory(loads) == {"app": 0.5}
    assert memory(loads, DB) == {}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(at=0), None),
        (Usage(at=0, memory=MemoryUsage(limit_bytes=10)), None),
        (Usage(at=0, memory_bytes=10), None),
        (Usage(at=0, memory_bytes=10, memory=MemoryUsage(limit_bytes=0)), None),
        (Usage(at=0, memory_bytes=0, memory=MemoryUsage(limit_bytes=10)), 0.0),
        (Usage(at=0, memory_bytes=11, memory=MemoryUsage(limit_bytes=10)), 1.1),
    ],
)
def test_an_unknown_fraction_is_not_zero(usage: Usage, expected: float | None) -> None:
    loads = ContainerLoads()
    loads.update({WEB: {"app": usage}}, 0)
    assert memory(loads).get("app") == expected


def test_a_pod_is_evaluated_when_its_usage_has_changed_enough() -> None:
    loads = ContainerLoads()

    def update(fraction: float) -> list[PodUID]:
        changed = loads.update({WEB: {"app": used(fraction)}, DB: {"app": used(0.5)}}, 0)
        for uid in changed:
            loads.evaluate(uid)
        return changed

    assert update(0.5) == [WEB, DB]
    assert update(0.51) == []
    assert update(0.519) == []
    assert update(0.52) == [WEB]
    assert update(0.501) == []
    assert update(0.5) == [WEB]


def test_what_is_not_evaluated_stays_due() -> None:
    loads = ContainerLoads()
    for _ in range(2):
        assert loads.update({WEB: {"app": used(0.5)}}, 0) == [WEB]
    loads.evaluate(WEB)
    assert loads.update({WEB: {"app": used(0.5)}}, 0) == []


def test_a_container_that_stops_is_unknown_again() -> None:
    loads = ContainerLoads()
    loads.update({WEB: {"app": used(0.5)}, DB: {"app": used(0.5)}}, 0)
    for uid in (WEB, DB):
        loads.evaluate(uid)
    assert loads.update({WEB: {}}, 0) == [WEB, DB]
    assert (memory(loads), memory(loads, DB)) == ({}, {})
    assert (loads.is_measured(WEB), loads.is_measured(DB)) == (True, False)
    assert loads.update({WEB: {}}, 0) == []


def test_a_removed_pod_is_not_due() -> None:
    loads = ContainerLoads()
    loads.update({WEB: {"app": used(0.5)}}, 0)
    loads.evaluate(WEB)
    loads.forget(WEB)
    assert loads.update({}, 0) == []


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=50))
def test_a_fact_is_never_far_from_the_truth(fractions: list[int]) -> None:
    loads, evaluated = ContainerLoads(), -1.0
    for thousandths in fractions:
        for uid in loads.update({WEB: {"app": used(thousandths / 1000)}}, 0):
            evaluated = loads.evaluate(uid)["app"].memory_used_fraction or 0.0
        assert abs(evaluated - thousandths / 1000) < DEADBAND


class TestThrottling:
    @staticmethod
    def window(*readings: tuple[int, int], period: int = PERIOD) -> ThrottlingWindow:
        """The window after these readings of periods and throttled periods."""
        window = ThrottlingWindow()
        for number, reading in enumerate(readings):
            window = window.add(CpuThrottling(*reading), number * period)
        return window

    def test_it_is_known_from_the_second_reading_on(self) -> None:
        assert self.window((100, 90)).throttled_fraction is None
        assert self.window((100, 90), (200, 90)).throttled_fraction == 0.0
        assert self.window((100, 90), (200, 115)).throttled_fraction == 0.25

    def test_an_idle_container_is_not_throttled(self) -> None:
        assert self.window((100, 90), (100, 90)).throttled_fraction == 0.0

    def test_it_covers_five_minutes(self) -> None:
        busy = [(100 * number, 100 * number) for number in range(10)]
        calm = [(1000 + 100 * number, 900) for number in range(31)]
        assert self.window(*busy, *calm[:-1]).throttled_fraction == 0.0
        fraction = self.window(*busy, *calm[:20]).throttled_fraction
        assert fraction == pytest.approx(900 / 2900)

    def test_a_restarted_container_starts_again(self) -> None:
        window = self.window((100, 90), (200, 190), (50, 0))
        assert window.throttled_fraction is None
        assert window.add(CpuThrottling(150, 10), 3 * PERIOD).throttled_fraction == 0.1

    def test_few_readings_are_retained(self) -> None:
        window = self.window(*((100 * number, 0) for number in range(1000)))
        assert len(window.readings) <= THROTTLING_WINDOW_NANOS // PERIOD + 2

    def test_a_pause_does_not_lose_the_base(self) -> None:
        window = self.window((0, 0), (100, 50), period=THROTTLING_WINDOW_NANOS * 2)
        assert window.throttled_fraction == 0.5

    def test_it_is_a_fact_of_the_container(self) -> None:
        loads = ContainerLoads()
        for number in range(2):
            reading = (100 * number, 30 * number)
            usage = {"app": used(0.5, throttling=reading), "proxy": used()}
            loads.update({WEB: usage}, number * PERIOD)
        assert loads.evaluate(WEB) == {
            "app": ContainerLoad(memory_used_fraction=0.5, cpu_throttled_fraction=0.3)
        }
        loads.update({WEB: {"app": used(0.5)}}, 2 * PERIOD)
        assert loads.evaluate(WEB)["app"].cpu_throttled_fraction is None
