"""Probes in virtual time: the times of checks, results and events."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.probes.decide.check_result import CheckError, CheckResult
from podstatus.probes.decide.targets import ProbeTarget
from podstatus.probes.metrics import ProbeMetrics
from podstatus.probes.workers import ProbeWorkers
from podstatus.runtime.port import ProbeResult
from podstatus.testing.clock import FakeClock
from tests.support.probed_pods import START, a_probe, probed_pod, shown
from tests.support.world_in_memory import ListeningRecorder

GOOD, BAD = CheckResult(success=True), CheckResult(success=False, output="no")
Answer = CheckResult | Exception | float
"""What a check comes to; a number: it takes so many seconds, and is good."""


class Rig:
    """Probe workers with scripted containers."""

    def __init__(self, chance: float = 0.5) -> None:
        self.clock = FakeClock()
        self._began = self.clock.monotonic()
        self.recorder = ListeningRecorder(self.clock)
        self.answers: dict[str, Callable[[], Answer]] = defaultdict(lambda: lambda: GOOD)
        """By kind of the probe."""
        self.checks: list[tuple[float, str, str]] = []
        """When, of which kind, of which container."""
        self.results: list[tuple[float, str, bool, str]] = []
        self.under_way = 0
        self.workers = ProbeWorkers(
            self._check,
            self.recorder,
            on_result=self._take,
            clock=self.clock,
            metrics=ProbeMetrics(),
            random=lambda: chance,
        )

    @property
    def passed(self) -> float:
        """Seconds since the beginning."""
        return (self.clock.monotonic() - self._began) / 1e9

    def times(self, kind: str, id: str = "") -> list[float]:
        """Times of the checks of this type."""
        return [at for at, k, i in self.checks if k == kind and id in i]

    @property
    def events(self) -> list[str]:
        return [f"{event.reason}: {event.message}" for event in self.recorder.events]

    async def _check(self, target: ProbeTarget) -> CheckResult:
        kind = target.key.kind.value
        self.checks.append((self.passed, kind, target.key.container_id))
        answer = self.answers[kind]()
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, CheckResult):
            return answer
        self.under_way += 1
        try:
            await self.clock.wait(answer)
        finally:
            self.under_way -= 1
        return GOOD

    def _take(self, result: ProbeResult) -> None:
        self.results.append((self.passed, result.probe, result.success, result.container_id))


@asynccontextmanager
async def working(rig: Rig) -> AsyncIterator[Rig]:
    task = asyncio.create_task(rig.workers.run())
    await rig.clock.advance(0)
    try:
        yield rig
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert rig.under_way == 0


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with working(Rig(chance=0)) as rig:
        yield rig


async def test_a_container_is_checked_when_it_runs_and_then_once_in_a_period() -> None:
    pod = probed_pod(readiness=a_probe(period_seconds=5))
    async with working(Rig()) as rig:
        rig.workers.update_pod(pod, shown(pod, runs=False, started=False))
        await rig.clock.advance(3)
        rig.workers.update_pod(pod, shown(pod))
        await rig.clock.advance(11)
        assert rig.times("readiness") == [3, 8, 13]
        assert rig.results == [(at, "readiness", True, "c1-app") for at in (3, 8, 13)]
        assert rig.events == []


async def test_the_status_of_a_container_that_is_checked_changes_nothing(rig: Rig) -> None:
    pod = probed_pod(readiness=a_probe(period_seconds=5))
    for _ in range(8):
        rig.workers.update_pod(pod, shown(pod))
        await rig.clock.advance(1)
    assert rig.times("readiness") == [0, 5]


async def test_the_delay_is_kept_though_the_clock_is_wrong() -> None:
    pod = probed_pod(readiness=a_probe(initial_delay_seconds=4, period_seconds=10))
    later, earlier = (Time.parse(f"2{year}-01-01T00:00:00Z") for year in ("150", "050"))
    for since, first in ((START, 4), (later, 4), (earlier, 0)):
        async with working(Rig(chance=0)) as rig:
            rig.workers.update_pod(pod, shown(pod, since=since))
            await rig.clock.advance(6)
            assert rig.times("readiness") == [first]


async def test_the_others_wait_until_the_container_has_started_and_then_begin_at_once() -> None:
    pod = probed_pod(
        startup=a_probe(period_seconds=2), readiness=a_probe(), liveness=a_probe(period_seconds=3)
    )
    async with working(Rig()) as rig:
        rig.workers.update_pod(pod, shown(pod, runs=False, started=False))
        up = iter((BAD, BAD, GOOD))
        rig.answers["startup"] = lambda: next(up)
        rig.workers.update_pod(pod, shown(pod, started=False))
        await rig.clock.advance(5)
        assert rig.times("startup") == [0, 2, 4]
        assert rig.times("readiness") == rig.times("liveness") == []
        assert rig.results == [(4, "startup", True, "c1-app")]
        rig.workers.update_pod(pod, shown(pod))
        await rig.clock.advance(0)
        assert rig.times("readiness") == rig.times("liveness") == [5]
        assert len(rig.times("startup")) == 3


async def test_after_its_verdict_a_container_is_left_alone_until_there_is_another(rig: Rig) -> None:
    pod = probed_pod(liveness=a_probe(period_seconds=1, failure_threshold=2))
    rig.answers["liveness"] = lambda: BAD
    rig.workers.update_pod(pod, shown(pod))
    await rig.clock.advance(5)
    rig.workers.update_pod(pod, shown(pod))
    await rig.clock.advance(5)
    assert rig.times("liveness") == [0, 1]
    assert rig.results == [(1, "liveness", False, "c1-app")]
    assert rig.events == ["Unhealthy: Liveness probe failed: no"] * 2
    rig.workers.update_pod(pod, shown(pod, id="c2"))
    await rig.clock.advance(5)
    assert rig.times("liveness", "c2") == [10, 11]
    assert rig.results[1:] == [(11, "liveness", False, "c2-app")]


async def test_failures_of_one_container_do_not_count_against_the_next(rig: Rig) -> None:
    pod = probed_pod(liveness=a_probe(period_seconds=1, failure_threshold=3))
    rig.answers["liveness"] = lambda: BAD
    rig.workers.update_pod(pod, shown(pod))
    await rig.clock.advance(1.5)
    rig.workers.update_pod(pod, shown(pod, id="c2"))
    await rig.clock.advance(1.9)
    assert rig.results == []


async def test_a_hanging_check_blocks_no_other_and_never_overlaps_itself(rig: Rig) -> None:
    slow = probed_pod("slow", readiness=a_probe(period_seconds=1))
    quick = probed_pod("quick", liveness=a_probe(period_seconds=1))
    rig.answers["readiness"] = lambda: 2.5
    rig.workers.update_pod(slow, shown(slow))
    rig.workers.update_pod(quick, shown(quick))
    await rig.clock.advance(6)
    assert rig.times("readiness") == [0, 2.5, 5]
    assert rig.times("liveness") == [0, 1, 2, 3, 4, 5, 6]
    assert rig.under_way == 1


async def test_a_check_without_a_result_is_tried_three_times_for_nothing(rig: Rig) -> None:
    pod = probed_pod(readiness=a_probe(period_seconds=10, failure_threshold=1))
    rig.answers["readiness"] = lambda: CheckError("no way")
    rig.workers.update_pod(pod, shown(pod))
    await rig.clock.advance(1)
    assert rig.times("readiness") == [0, 0, 0]
    assert rig.results == []
    assert rig.events == [
        "Unhealthy: Readiness probe errored and resulted in unknown state: no way"
    ]
    then = iter((CheckError("once"), BAD))
    rig.answers["readiness"] = lambda: next(then)
    await rig.clock.advance(10)
    assert rig.results == [(10, "readiness", False, "c1-app")]
    assert rig.events[1:] == ["Unhealthy: Readiness probe failed: no"]


async def test_a_check_that_raises_is_reported_and_probing_continues(
    rig: Rig,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pod = probed_pod(readiness=a_probe(period_seconds=1))
    rig.answers["readiness"] = lambda: ZeroDivisionError("a bug")
    rig.workers.update_pod(pod, shown(pod))
    await rig.clock.advance(0.5)
    assert rig.events == ["Unhealthy: Readiness probe errored and resulted in unknown state: a bug"]
    assert "probe check raised an exception" in caplog.text
    rig.answers["readiness"] = lambda: GOOD
    await rig.clock.advance(1)
    assert rig.results == [(1, "readiness", True, "c1-app")]


async def test_a_doubtful_answer_is_a_success_with_a_warning(rig: Rig) -> None:
    pod = probed_pod(readiness=a_probe())
    rig.answers["readiness"] = lambda: CheckResult(success=True, output="hm", warning=True)
    rig.workers.update_pod(pod, shown(pod))
    await rig.clock.advance(1)
    assert rig.results == [(0, "readiness", True, "c1-app")]
    assert rig.events == ["ProbeWarning: Readiness probe warning: hm"]


async def test_a_pod_that_is_to_end_is_only_asked_whether_it_is_ready(rig: Rig) -> None:
    pod = probed_pod(readiness=a_probe(period_seconds=1), liveness=a_probe(period_seconds=1))
    rig.answers["readiness"] = lambda: BAD
    rig.workers.update_pod(pod, shown(pod))
    await rig.clock.advance(0.5)
    rig.workers.update_pod(pod, shown(pod), terminating=True)
    await rig.clock.advance(2)
    assert rig.times("liveness") == [0]
    assert rig.times("readiness") == [0, 1, 2]
    assert rig.results[-1] == (2, "readiness", False, "c1-app")


@pytest.mark.parametrize("how", ["stops", "ends", "is forgotten"])
async def test_probing_ends_with_the_container_even_during_a_check(rig: Rig, how: str) -> None:
    pod = probed_pod(readiness=a_probe(period_seconds=1))
    rig.answers["readiness"] = lambda: 30.0
    rig.workers.update_pod(pod, shown(pod))
    await rig.clock.advance(1)
    assert rig.under_way == 1
    match how:
        case "stops":
            rig.workers.update_pod(pod, shown(pod, runs=False))
        case "ends":
            rig.workers.remove_pod(pod.uid)
        case _:
            rig.workers.retain_only({PodUID("p")})
            assert rig.under_way == 1
            rig.workers.retain_only(set())
    await rig.clock.advance(60)
    assert (rig.under_way, len(rig.checks), rig.results) == (0, 1, [])


async def test_after_a_restart_of_the_agent_first_checks_are_spread_over_the_period() -> None:
    pod = probed_pod(readiness=a_probe(period_seconds=10, failure_threshold=1))
    async with working(Rig(chance=0.7)) as rig:
        rig.answers["readiness"] = lambda: BAD
        rig.workers.update_pod(pod, shown(pod))
        await rig.clock.advance(6.9)
        assert (rig.checks, rig.results) == ([], [])
        await rig.clock.advance(10)
        assert rig.times("readiness") == [7]
        rig.workers.update_pod(pod, shown(pod, id="c2"))
        await rig.clock.advance(0)
        assert rig.times("readiness", "c2") == [16.9]


async def test_startup_probes_of_started_containers_are_reported_without_a_check(rig: Rig) -> None:
    pod = probed_pod(sidecars=("side",), startup=a_probe(period_seconds=1))
    for _ in range(3):
        rig.workers.update_pod(pod, shown(pod))
        await rig.clock.advance(5)
    assert rig.checks == []
    assert sorted(rig.results) == [
        (0, "startup", True, "c1-app"),
        (0, "startup", True, "c1-side"),
    ]


async def test_who_was_seen_before_the_start_is_checked_after_it() -> None:
    pod = probed_pod(readiness=a_probe(period_seconds=2))
    rig = Rig()
    rig.workers.update_pod(pod, shown(pod))
    async with working(rig):
        await rig.clock.advance(2)
        assert rig.times("readiness") == [1]
    rig.workers.update_pod(pod, shown(pod, id="c2"))
    await rig.clock.advance(10)
    assert len(rig.checks) == 1


async def test_a_pod_that_moves_is_asked_at_its_new_address() -> None:
    pod = probed_pod(readiness=a_probe(period_seconds=1))
    asked = list[str]()

    async def check(target: ProbeTarget) -> CheckResult:
        asked.append(target.pod_ip)
        return GOOD

    rig = Rig()
    rig.workers = ProbeWorkers(
        check,
        rig.recorder,
        on_result=lambda _: None,
        clock=rig.clock,
        metrics=ProbeMetrics(),
        random=lambda: 0,
    )
    async with working(rig):
        rig.workers.update_pod(pod, shown(pod))
        await rig.clock.advance(0.5)
        rig.workers.update_pod(pod, structs.replace(shown(pod), pod_ip="10.0.0.2"))
        await rig.clock.advance(1)
        assert asked == ["10.0.0.1", "10.0.0.2"]


async def test_a_clock_that_is_set_neither_stops_nor_floods_probes(rig: Rig) -> None:
    pod = probed_pod(readiness=a_probe(period_seconds=2), liveness=a_probe(initial_delay_seconds=5))
    rig.workers.update_pod(pod, shown(pod))
    for seconds in (3600.0, -7200.0):
        await rig.clock.advance(4)
        rig.clock.step(seconds)
        rig.workers.update_pod(pod, shown(pod))
    await rig.clock.advance(4)
    assert rig.times("readiness") == [0, 2, 4, 6, 8, 10, 12]
    assert rig.times("liveness") == [5]
    rig.workers.update_pod(pod, shown(pod, id="c2"))
    await rig.clock.advance(6)
    assert rig.times("liveness", "c2") == [17]
