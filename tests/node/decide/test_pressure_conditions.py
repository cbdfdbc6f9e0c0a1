"""Pressure conditions, and how long they persist."""

import pytest
from msgspec import structs

from podstatus.node.decide.pressure_conditions import (
    PressureHistory,
    parse_thresholds,
    pressures,
    recovered_pressures,
)
from podstatus.node.decide.readings import MachineReading
from podstatus.node.settings import DEFAULT_EVICTION_HARD
from tests.node.scene import DISK, GI, MACHINE

MI = 1024**2
DEFAULTS = dict(DEFAULT_EVICTION_HARD)


def memory(available: int) -> MachineReading:
    return structs.replace(MACHINE, memory_available_bytes=available)


def disk(**changes: int) -> MachineReading:
    return structs.replace(MACHINE, disk=structs.replace(DISK, **changes))


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (MACHINE, ""),
        (memory(100 * MI), ""),
        (memory(100 * MI - 1), "MemoryPressure"),
        (disk(available_bytes=10 * GI), ""),
        (disk(available_bytes=10 * GI - 1), "DiskPressure"),
        (disk(inodes_free=50_000), ""),
        (disk(inodes_free=49_999), "DiskPressure"),
        (disk(inodes=0, inodes_free=0), ""),
        (structs.replace(MACHINE, disk=None), ""),
        (structs.replace(MACHINE, pids=32_768), ""),
    ],
)
def test_less_than_the_threshold_is_too_little(machine: MachineReading, expected: str) -> None:
    assert pressures(machine, parse_thresholds(DEFAULTS)) == frozenset(filter(None, [expected]))


@pytest.mark.parametrize(
    ("pids", "most", "expected"),
    [(90, 100, []), (91, 100, ["PIDPressure"]), (200, 100, ["PIDPressure"]), (200, None, [])],
)
def test_pid_pressure_with_a_configured_threshold(
    pids: int, most: int | None, expected: list[str]
) -> None:
    machine = structs.replace(MACHINE, pids=pids, max_pids=most)
    assert pressures(machine, parse_thresholds({"pid.available": "10%"})) == frozenset(expected)


def test_a_filesystem_that_does_not_count_files_does_not_run_out_of_them() -> None:
    thresholds = parse_thresholds({"nodefs.inodesFree": "1k"})
    assert pressures(disk(inodes_free=999), thresholds) == {"DiskPressure"}
    assert pressures(disk(inodes=0, inodes_free=0), thresholds) == frozenset()


@pytest.mark.parametrize(
    ("eviction_hard", "mistake"),
    [
        ({"memory.available": "lots"}, "memory.available"),
        ({"nodefs.available": "110%"}, "0% to 100%"),
        ({"nodefs.available": "x%"}, "0% to 100%"),
        ({"nodefs.available": "-1"}, "use 0 or more"),
        ({"moon.available": "1"}, "use one of memory.available, nodefs.available"),
    ],
)
def test_what_cannot_be_a_threshold_is_named(eviction_hard: dict[str, str], mistake: str) -> None:
    with pytest.raises(ValueError, match=mistake):
        parse_thresholds(eviction_hard)


def test_all_errors_are_reported_at_once() -> None:
    with pytest.raises(ValueError, match=r"memory\.available.*nodefs\.available"):
        parse_thresholds({"memory.available": "lots", "nodefs.available": "lots"})


def test_thresholds_of_images_are_taken_and_not_looked_at() -> None:
    assert parse_thresholds({"imagefs.available": "15%", "imagefs.inodesFree": "5%"}) == {}


def test_a_pressure_is_shown_for_a_while_after_it_was_last_seen() -> None:
    second = 10**9
    seen = PressureHistory().with_observation(frozenset(["DiskPressure"]), 0)
    seen = seen.with_observation(frozenset(["DiskPressure"]), 10 * second)
    later = seen.with_observation(frozenset(), 20 * second)
    assert later.active(300, 310 * second - 1) == {"DiskPressure"}
    assert later.active(300, 310 * second) == frozenset()


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (MACHINE, ["DiskPressure"]),
        (disk(available_bytes=20 * GI), ["DiskPressure"]),
        (disk(available_bytes=20 * GI - 1), []),
        (disk(inodes_free=99_999), []),
        (structs.replace(MACHINE, disk=None), []),
    ],
)
def test_a_disk_has_recovered_with_twice_the_threshold(
    machine: MachineReading, expected: list[str]
) -> None:
    assert recovered_pressures(machine, parse_thresholds(DEFAULTS)) == frozenset(expected)


def test_a_pressure_of_which_there_is_more_than_enough_again_is_shown_for_5_seconds() -> None:
    second, both = 10**9, frozenset(["DiskPressure", "MemoryPressure"])
    seen = PressureHistory().with_observation(both, 0)
    over = frozenset(["DiskPressure"])
    assert seen.active(300, 5 * second - 1, over) == both
    assert seen.active(300, 5 * second, over) == {"MemoryPressure"}
    assert seen.active(2, 2 * second, over) == frozenset()
