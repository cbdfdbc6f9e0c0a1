"""The tests that are run, and why some of them cannot pass: tests.yaml.

A group of tests has a queue, whose tests run at the same time as those of other queues, and a
`reason` if its tests cannot pass on the process runtime.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import yaml

PARALLEL, DISRUPTIVE, CONFLICT = "parallel", "disruptive", "conflict"
LAST = (DISRUPTIVE, CONFLICT)
"""Queues whose tests disturb those of all others."""
_FILE = Path(__file__).with_name("tests.yaml")


class ListedTest(msgspec.Struct, frozen=True, kw_only=True):
    """A test of e2e.test, by its full name."""

    name: str
    queue: str
    """PARALLEL and CONFLICT run several tests at a time, all others one."""
    reason: str
    """Why it cannot pass; empty if it must."""
    is_slow: bool
    """Whether it is too slow for the sample."""


class _Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    queue: str = PARALLEL
    reason: str = ""
    slow: bool = False
    tests: str


def load_listed_tests(path: Path = _FILE) -> list[ListedTest]:
    """Return the listed tests. Raises ValueError if a test is listed twice."""
    groups = msgspec.convert(yaml.safe_load(path.read_text()), type=list[_Group])
    listed = [
        ListedTest(name=name, queue=group.queue, reason=group.reason, is_slow=group.slow)
        for group in groups
        for name in group.tests.splitlines()
    ]
    names = [test.name for test in listed]
    if len(names) > len(set(names)):
        raise ValueError(f"{path}: listed twice: {max(names, key=names.count)}")
    return listed


def by_queue(tests: Iterable[ListedTest]) -> Mapping[str, list[str]]:
    """Return the names of the tests of each queue."""
    queues: dict[str, list[str]] = {}
    for test in tests:
        queues.setdefault(test.queue, []).append(test.name)
    return queues
