"""A node under DiskPressure is read more often, and recovers quickly."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.node.decide.pressure_conditions import PressureMonitor, parse_thresholds
from podstatus.node.decide.readings import MachineReading
from podstatus.node.machine.reader import DiskReader
from podstatus.node.machine.usage import NodeUsage
from podstatus.node.settings import DEFAULT_EVICTION_HARD
from podstatus.testing.clock import FakeClock
from tests.node.scene import DISK, MACHINE, NodeScene

FULL = structs.replace(DISK, available_bytes=0)
SHORT = structs.replace(MACHINE, disk=FULL)


def play(script: Callable[[NodeScene], Awaitable[None]]) -> None:
    async def scene() -> None:
        await script(NodeScene())

    asyncio.run(scene())


async def test_the_status_is_brought_up_to_date_when_a_pressure_comes_and_after_it_went() -> None:
    clock, looks = FakeClock(), list[int]()
    thresholds = parse_thresholds(DEFAULT_EVICTION_HARD)
    shortage = PressureMonitor(thresholds, lambda: looks.append(clock.now()), clock=clock)
    soon = []
    for machine in (MACHINE, SHORT, SHORT, MACHINE, MACHINE):
        soon.append((shortage.observe(machine), len(looks)))
        await clock.advance(2)
    assert soon == [(False, 0), (True, 1), (True, 1), (True, 2), (True, 3)]
    await clock.advance(30)
    assert not shortage.observe(MACHINE)
    assert len(looks) == 3


async def test_a_machine_that_is_short_is_read_every_2_seconds() -> None:
    clock, taken = FakeClock(), asyncio.Queue[int]()

    def read() -> MachineReading:
        taken.put_nowait(clock.now())
        return MACHINE

    disk = DiskReader(Path("/"), read=lambda _: FULL)

    def is_short(machine: MachineReading) -> bool:
        return machine.disk is not None and machine.disk.available_bytes == 0

    usage = NodeUsage(disk, clock=clock, read=read, on_reading=is_short)
    running = asyncio.create_task(usage.run())
    first = await taken.get()
    await asyncio.sleep(0)
    await clock.advance(2)
    assert await taken.get() - first == 2 * 10**9
    running.cancel()


def test_disk_pressure_is_over_15_seconds_after_there_is_room_again() -> None:
    async def script(scene: NodeScene) -> None:
        async with scene.running():
            await scene.clock.advance(1)
            scene.machine = SHORT
            await scene.clock.advance(60)
            assert scene.condition("DiskPressure").status == "True"
            scene.machine = MACHINE
            await scene.clock.advance(15)
            assert scene.condition("DiskPressure").status == "False"

    play(script)


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_wall_clock_jump_does_not_change_how_long_a_pressure_is_held(hours: int) -> None:
    async def script(scene: NodeScene) -> None:
        async with scene.running():
            await scene.clock.advance(1)
            scene.run_short_of_memory()
            await scene.clock.advance(60)
            scene.clock.step(hours * 3600)
            scene.machine = MACHINE
            await scene.clock.advance(280)
            assert scene.condition("MemoryPressure").status == "True"
            await scene.clock.advance(30)
            assert scene.condition("MemoryPressure").status == "False"

    play(script)


def test_disk_pressure_that_was_over_before_the_server_heard_of_it_is_not_shown() -> None:
    async def script(scene: NodeScene) -> None:
        async with scene.running():
            await scene.clock.advance(1)
            scene.server.fail("patch_node_status", *[503] * 40)
            scene.machine = SHORT
            await scene.clock.advance(60)
            scene.machine = MACHINE
            await scene.clock.advance(15)
            assert scene.condition("DiskPressure").status == "False"
            assert "NodeHasDiskPressure" not in scene.events.reasons()

    play(script)
