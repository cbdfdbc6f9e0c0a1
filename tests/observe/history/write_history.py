"""A process that writes a history until it is killed, and prints what it wrote.

python -m tests.observe.history.write_history FILE FIRST
"""

import asyncio
import sys
from pathlib import Path

from podstatus import PodStatus
from podstatus.base.system_clock import SystemClock
from podstatus.observe.history.sqlite_store import History
from podstatus.observe.history.status_listener import StatusHistoryWriter
from podstatus.observe.history.writer import Retention
from podstatus.testing.builders import make_pod

PERIOD = 0.002


async def write(path: Path, first: int) -> None:
    """Record 500 pods a second, each with a numbered phase."""
    retention = Retention(days=1, size=4 * 2**20)
    writer = StatusHistoryWriter(History.open(path), clock=SystemClock(), retention=retention)
    writing = asyncio.create_task(writer.run())
    number = first
    while not writing.done():
        pod = make_pod(f"pod-{number % 20}", status=PodStatus(phase=str(number)))
        writer.on_pod_updated(pod, pod.status, is_added=False)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        number += 1
        await asyncio.sleep(PERIOD)


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2])))
