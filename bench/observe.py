"""The cost of recording every transition, for the caller that sets a status and for the process.

The same changes go through two status managers, one without notifiers and one with the agent's
snapshot cache and history, in interleaved rounds of one process; the medians of the differences are
reported. A change flips the readiness of a container and two conditions: three transitions. A
caller is measured with single changes, each of which has to wake the observers, and in a burst. The
history is a real file; writing it is compared with bare SQLite.
"""

import asyncio
import gc
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from podstatus import Pod, PodManager, StatusManager
from podstatus.agent.compose.held_back_phases import HeldBackPhases
from podstatus.agent.compose.snapshot_updater import SnapshotUpdater
from podstatus.base.system_clock import SystemClock
from podstatus.observe.history.sqlite_store import History
from podstatus.observe.history.status_listener import StatusHistoryWriter
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.testing.builders import make_pod, make_status, running

RESULTS = Path(__file__).parent / "results" / "observe.json"
PODS = 200
FLIPS = 10
"""Flips of each pod in one pass: 2,000 changes."""
ROUNDS = 15
TRANSITIONS = 3
AT_MOST = {"caller_us": 4.0, "cpu_us": 60.0}


class NothingRuns:
    """A node without running containers."""

    def could_have_running_containers(self, pod: Pod) -> bool:
        """Return False: no containers are running."""
        return False


class Rig:
    """Pods whose readiness flips, with or without observers."""

    def __init__(self, folder: Path | None) -> None:
        self.pods = [make_pod(f"pod-{number}") for number in range(PODS)]
        directory = PodManager(self.pods)
        self.manager = StatusManager(None, directory, NothingRuns())
        self.historian: StatusHistoryWriter | None = None
        self.poster: SnapshotUpdater | None = None
        if folder is not None:
            self.historian = StatusHistoryWriter(
                History.open(folder / "history.db"), clock=SystemClock()
            )
            held_back = HeldBackPhases(directory, NothingRuns())
            self.poster = SnapshotUpdater(SnapshotCache(), directory, self.manager, held_back)
            held_back.forward_to((self.historian, self.poster))
            self.manager.add_notifier(held_back)
        self.ready = False
        for pod in self.pods:
            status = make_status("Running", running("app", ready=False))
            self.manager.set_pod_status(pod, status)
        self.record()

    def flip(self) -> None:
        """Change every pod a few times."""
        change = self.manager.set_container_readiness
        for _ in range(FLIPS):
            self.ready = not self.ready
            for pod in self.pods:
                change(pod.uid, "fake://app", ready=self.ready)

    async def flip_alone(self) -> float:
        """Change every pod with pauses in between; return the median of seconds per change."""
        updater = asyncio.create_task(self.poster.run()) if self.poster else None
        self.ready = not self.ready
        spent = []
        for pod in self.pods:
            for _ in range(5):
                await asyncio.sleep(0)
            start = time.perf_counter()
            self.manager.set_container_readiness(pod.uid, "fake://app", ready=self.ready)
            spent.append(time.perf_counter() - start)
        if updater is not None:
            updater.cancel()
            await asyncio.wait({updater})
        return statistics.median(spent)

    def record(self) -> None:
        """Write the history, and update the snapshot cache."""
        if self.historian is not None and self.poster is not None:
            asyncio.run(self.historian.write_once())
            self.poster.update_once()


def timed(work: Callable[[], object]) -> float:
    """Return the CPU seconds of the work, for all threads of the process."""
    gc.collect()
    gc.freeze()
    start = time.process_time()
    work()
    spent = time.process_time() - start
    gc.unfreeze()
    return spent


def bare_sqlite(folder: Path, number: int) -> float:
    """Return the CPU seconds to write as many bare rows in one transaction."""
    database = sqlite3.connect(folder / f"bare-{number}.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, a, b, c, d)")
    rows = [(at, "condition", "Ready", "True") for at in range(PODS * FLIPS * TRANSITIONS)]

    def write() -> None:
        database.execute("BEGIN")
        database.executemany("INSERT INTO rows VALUES (NULL, ?, ?, ?, ?)", rows)
        database.execute("COMMIT")

    spent = timed(write)
    database.close()
    return spent


def measure(folder: Path) -> dict[str, float]:
    """Return the microseconds per transition, for the caller and the process, and the ratios."""
    watched, alone = Rig(folder), Rig(None)
    rounds: dict[str, list[float]] = {name: [] for name in ("lone", "burst", "cpu", "bare", "sql")}
    changes = PODS * FLIPS
    for number in range(ROUNDS):
        bare = timed(alone.flip) / changes
        observed = timed(watched.flip) / changes
        recorded = timed(watched.record) / changes
        single = asyncio.run(alone.flip_alone())
        rounds["lone"].append(asyncio.run(watched.flip_alone()) - single)
        rounds["burst"].append(observed - bare)
        rounds["cpu"].append((observed - bare + recorded) / TRANSITIONS)
        rounds["bare"].append(bare)
        rounds["sql"].append(bare_sqlite(folder, number) / changes / TRANSITIONS)
        watched.record()
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
    medians = {name: statistics.median(values) * 1e6 for name, values in rounds.items()}
    return {
        "caller_us": medians["lone"] / TRANSITIONS,
        "caller_in_a_burst_us": medians["burst"] / TRANSITIONS,
        "cpu_us": medians["cpu"],
        "caller_ratio": medians["burst"] / medians["bare"],
        "sqlite_ratio": medians["cpu"] / medians["sql"],
    }


def main() -> None:
    """Measure, print a table and write the figures; exit with 1 if a limit is exceeded."""
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder))
    print(f"{'':<22}{'seen':>10}{'at most':>10}")
    for name, value in figures.items():
        limit = AT_MOST.get(name)
        print(f"{name:<22}{value:>10.2f}" + ("" if limit is None else f"{limit:>10.1f}"))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({k: round(v, 3) for k, v in figures.items()}, indent=1))
    sys.exit(any(figures[name] > limit for name, limit in AT_MOST.items()))


if __name__ == "__main__":
    main()
