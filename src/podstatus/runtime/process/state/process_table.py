"""Snapshot of all processes of the machine: parents, CPU time, memory."""

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from podstatus.runtime.process.records.models import ProcessIdentity
from podstatus.runtime.process.shim.processes import boot_id

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Fields of /proc/<pid>/stat after the name, which may contain any character; see proc(5).
_STATE, _PARENT, _USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM = 0, 1, 11, 12, 13, 14
_THREADS, _START, _RESIDENT = 17, 19, 21


class ProcessRow(msgspec.Struct, frozen=True, gc=False):
    """A process at one point in time."""

    pid: int
    parent: int
    state: str
    """One letter; `Z` is a zombie."""
    start_ticks: int
    own_seconds: float
    """CPU time."""
    children_seconds: float
    """CPU time of reaped children, recursively."""
    threads: int
    resident_bytes: int


class ProcessTable:
    """The processes by pid and by parent."""

    def __init__(self, rows: Iterable[ProcessRow]) -> None:
        self.rows: Mapping[int, ProcessRow] = {row.pid: row for row in rows}
        self._children: dict[int, list[ProcessRow]] = defaultdict(list)
        for row in self.rows.values():
            self._children[row.parent].append(row)

    def find(self, process: ProcessIdentity) -> ProcessRow | None:
        """Return the process, or None if it is gone."""
        row = self.rows.get(process.pid)
        if row is None or row.start_ticks != process.start_ticks or process.boot_id != boot_id():
            return None
        return row

    def descendants(self, pid: int) -> list[ProcessRow]:
        """Return all descendants of a process, without itself."""
        result: list[ProcessRow] = []
        queue = [pid]
        while queue:
            children = self._children.get(queue.pop(), ())
            result += children
            queue += [row.pid for row in children]
        return result


def read_processes() -> ProcessTable:
    """Read all processes once; those that end meanwhile are omitted."""
    names = os.listdir("/proc")  # noqa: PTH208 - a thousand Path objects are not free
    rows = (_read(f"/proc/{name}/stat", int(name)) for name in names if name.isdecimal())
    return ProcessTable(row for row in rows if row is not None)


def _read(path: str, pid: int) -> ProcessRow | None:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as above
            text = file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    fields = text.rpartition(b")")[2].split()
    return ProcessRow(
        pid=pid,
        parent=int(fields[_PARENT]),
        state=fields[_STATE].decode(),
        start_ticks=int(fields[_START]),
        own_seconds=(int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS_PER_SECOND,
        children_seconds=(int(fields[_CHILDREN_USER]) + int(fields[_CHILDREN_SYSTEM]))
        / _TICKS_PER_SECOND,
        threads=int(fields[_THREADS]),
        resident_bytes=int(fields[_RESIDENT]) * _PAGE_BYTES,
    )
