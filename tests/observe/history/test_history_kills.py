"""A writer that is killed repeatedly loses at most the last second, and never the file."""

import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from podstatus.observe.history.sqlite_store import History
from podstatus.observe.transitions.compare_statuses import PHASE
from tests.observe.history.write_history import PERIOD

KILLS = 30
A_SECOND = round(1 / PERIOD)
"""Changes per second on an idle machine; a busy one slows the caller and the writer alike."""

pytestmark = pytest.mark.slow


def written_until_killed(path: Path, first: int, seconds: float) -> list[int]:
    """The numbers that a writer printed."""
    words = [sys.executable, "-m", "tests.observe.history.write_history", str(path), str(first)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        numbers = [writer.stdout.readline()]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            numbers.append(writer.stdout.readline())
        writer.kill()
        numbers += writer.stdout.read().splitlines(keepends=True)
    return [int(line) for line in numbers if line.endswith("\n")]


def is_sound(path: Path) -> bool:
    database = sqlite3.connect(path)
    try:
        return bool(database.execute("PRAGMA integrity_check").fetchone() == ("ok",))
    finally:
        database.close()


def test_kills_lose_the_last_second_at_most(tmp_path: Path) -> None:
    path, chance, first, worst = tmp_path / "history.db", random.Random(7), 0, 0
    for _ in range(KILLS):
        numbers = written_until_killed(path, first, chance.uniform(0.2, 1.5))
        assert is_sound(path)
        history = History.open(path)
        kept = [
            int(m.transition.after) for m in history.entries_after(0, limit=10**6) if _is_phase(m)
        ]
        history.close()
        assert kept == sorted(kept)
        last = kept[-1] if kept else -1
        lost = [number for number in numbers if number > last]
        worst = max(worst, len(lost))
        assert worst < A_SECOND
        # All before the last stored one are stored, too.
        newest = [number for number in numbers if number <= last]
        assert kept[len(kept) - len(newest) :] == newest
        first = numbers[-1] + 1
    print(f"{KILLS} kills, {first} written, at most {worst} lost")  # noqa: T201


def _is_phase(entry: object) -> bool:
    return bool(entry.transition.kind == PHASE)  # type: ignore[attr-defined]
