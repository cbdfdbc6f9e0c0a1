"""Retention does not depend on the wall clock."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from podstatus.observe.history.sqlite_store import History
from podstatus.observe.history.status_listener import StatusHistoryWriter
from podstatus.observe.history.writer import Retention
from podstatus.testing.builders import make_pod, make_status
from podstatus.testing.clock import FakeClock

HOUR = 3600
DAY = 24 * HOUR
YEAR = 365 * DAY


def update(writer: StatusHistoryWriter, name: str) -> None:
    pod = make_pod(name, status=make_status("Running"))
    writer.on_pod_updated(pod, pod.status, is_added=True)


def names(history: History) -> set[str]:
    return {entry.name for entry in history.entries_after(0, limit=100_000)}


@pytest.mark.parametrize("seconds", [10 * DAY, -10 * DAY, 100 * YEAR, -130 * YEAR])
async def test_a_clock_that_is_set_erases_nothing(tmp_path: Path, seconds: int) -> None:
    history = History.open(tmp_path / "history.db")
    clock = FakeClock()
    writer = StatusHistoryWriter(history, clock=clock)
    update(writer, "before")
    await writer.write_once()
    clock.step(seconds)
    for _ in range(10):
        await clock.advance(60)
        await writer.prune_once()
    update(writer, "after")
    await writer.write_once()
    await writer.prune_once()
    assert names(history) == {"before", "after"}
    history.close()


async def test_days_in_which_no_agent_runs_do_not_count(tmp_path: Path) -> None:
    async def life(clock: FakeClock, name: str) -> set[str]:
        history = History.open(tmp_path / "history.db")
        writer = StatusHistoryWriter(history, clock=clock, retention=Retention(days=1))
        for hour in range(6):
            update(writer, f"{name}-{hour}")
            await writer.write_once()
            for _ in range(6):
                await clock.advance(600)
                await writer.prune_once()
        left = names(history)
        history.close()
        return left

    first = await life(FakeClock("2100-01-01T00:00:00Z"), "a")
    assert first == {f"a-{hour}" for hour in range(6)}
    # A month later, without an agent in between.
    second = await life(FakeClock("2100-02-01T00:00:00Z"), "b")
    assert second == first | {f"b-{hour}" for hour in range(6)}
    await life(FakeClock("2100-02-02T00:00:00Z"), "c")
    await life(FakeClock("2100-02-03T00:00:00Z"), "d")
    # 24 hours of uptime since the end of the first.
    last = await life(FakeClock("2100-02-04T00:00:00Z"), "e")
    assert not last & first
    assert {f"b-{hour}" for hour in range(1, 6)} <= last


async def test_a_process_that_was_stopped_for_days_erases_nothing(tmp_path: Path) -> None:
    history = History.open(tmp_path / "history.db")
    clock = FakeClock()
    writer = StatusHistoryWriter(history, clock=clock)
    update(writer, "before")
    await writer.write_once()
    await writer.prune_once()
    await clock.advance(30 * DAY)
    await writer.prune_once()
    assert names(history) == {"before"}
    history.close()


STEPS = st.lists(
    st.tuples(
        st.integers(1, 12).map(lambda number: 50 * number),
        st.sampled_from([0, 0, 0, 1, -1, HOUR, -HOUR, 10 * DAY, -10 * DAY, YEAR, -YEAR]),
        st.sampled_from(["update", "clean", "clean", "restart"]),
    ),
    min_size=1,
    max_size=60,
)


@settings(max_examples=25, deadline=None)
@example(steps=[(650, 0, "update"), (50, 0, "clean"), *[(600, 0, "clean")] * 6])
@example(steps=[(100, 0, "update"), (50, 0, "restart"), (50, 0, "clean"), *[(600, 0, "clean")] * 6])
@given(steps=STEPS)
def test_what_is_kept_goes_by_the_time_that_was_seen_to_pass(
    steps: list[tuple[int, int, str]],
) -> None:
    keep = HOUR
    retention = Retention(days=keep / DAY)

    async def scene(folder: Path) -> None:
        clock = FakeClock()
        history = History.open(folder / "history.db")
        writer = StatusHistoryWriter(history, clock=clock, retention=retention)
        seen, cleaned, written = 0.0, clock.monotonic(), dict[str, float]()
        for number, (seconds, jump, act) in enumerate(steps):
            await clock.advance(seconds)
            clock.step(jump)
            if act == "update":
                # Written at once, but elapsed time counts from the next pruning on.
                update(writer, f"pod-{number}")
                await writer.write_once()
                elapsed = min(600.0, (clock.monotonic() - cleaned) / 1e9)
                written[f"pod-{number}"] = seen + elapsed
            elif act == "clean":
                await writer.prune_once()
                seen += min(600.0, (clock.monotonic() - cleaned) / 1e9)
                cleaned = clock.monotonic()
                assert {name for name, at in written.items() if seen - at < keep} <= names(history)
            else:
                history.close()
                history = History.open(folder / "history.db")
                writer = StatusHistoryWriter(history, clock=clock, retention=retention)
                cleaned = clock.monotonic()
                # The time since the last pruning is not stored, so nothing is younger than that.
                written = {name: min(at, seen) for name, at in written.items()}
        # Twice that time without new entries: everything is pruned.
        for _ in range(14):
            await clock.advance(600)
            await writer.prune_once()
        assert names(history) == set()
        history.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(scene(Path(folder)))


async def test_its_size_is_bounded_though_the_clock_jumps(tmp_path: Path) -> None:
    history = History.open(tmp_path / "history.db")
    clock = FakeClock()
    retention = Retention(days=7, size=300_000)
    writer = StatusHistoryWriter(history, clock=clock, retention=retention)
    for round_ in range(12):
        clock.step((-1) ** round_ * 10 * YEAR)
        for number in range(400):
            update(writer, f"pod-{round_}-{number}")
        await writer.write_once()
        await writer.prune_once()
        assert (tmp_path / "history.db").stat().st_size < 600_000
    assert "pod-11-399" in names(history)
    assert "pod-0-0" not in names(history)
    history.close()
