"""A node under pressure is read more often."""

import asyncio
from pathlib import Path

from podstatus.node.decide.readings import MachineReading
from podstatus.node.machine.reader import DiskReader
from podstatus.node.machine.usage import NodeUsage
from podstatus.testing.clock import FakeClock
from tests.node.scene import DISK, MACHINE


async def test_a_node_is_read_every_2_seconds_while_the_receiver_requests_it() -> None:
    clock, taken = FakeClock(), asyncio.Queue[int]()

    def read() -> MachineReading:
        taken.put_nowait(clock.now())
        return MACHINE

    disk = DiskReader(Path("/"), read=lambda _: DISK)
    usage = NodeUsage(disk, clock=clock, read=read, on_reading=lambda _: True)
    running = asyncio.create_task(usage.run())
    first = await taken.get()
    await asyncio.sleep(0)
    await clock.advance(2)
    assert await taken.get() - first == 2 * 10**9
    running.cancel()
