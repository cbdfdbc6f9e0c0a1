"""Snapshot of processes of the machine: parents, CPU time, memory, page faults."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

import msgspec

from podstatus.runtime.process.records.models import ProcessIdentity
from podstatus.runtime.process.shim.processes import boot_id

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Fields of /proc/<pid>/stat after the name, which may contain any character; see proc(5).
_MINOR, _CHILDREN_MINOR, _MAJOR, _CHILDREN_MAJOR = 7, 8, 9, 10
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
    page_faults: int = 0
    """Minor and major."""
    major_page_faults: int = 0
    children_page_faults: int = 0
    """Of reaped children, recursively."""
    children_major_page_faults: int = 0


def read_anonymous_bytes(pid: int) -> int | None:
    """Return the resident memory of a process that no file backs; None if it is gone."""
    text = _contents(f"/proc/{pid}/statm")
    if not text:
        return None
    _, resident, shared, *_ = text.split()
    return (int(resident) - int(shared)) * _PAGE_BYTES


class ProcessTable:
    """The processes by pid and by parent."""

    def __init__(
        self,
        rows: Iterable[ProcessRow],
        anonymous_bytes: Callable[[int], int | None] = lambda _: None,
    ) -> None:
        """`anonymous_bytes` reads them by pid: another file, so only for processes of interest."""
        self.anonymous_bytes = anonymous_bytes
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
    rows = (_read(int(name)) for name in names if name.isdecimal())
    return ProcessTable((row for row in rows if row is not None), read_anonymous_bytes)


def read_some_processes(pids: Iterable[int]) -> ProcessTable:
    """Read these processes only; those that are gone are omitted."""
    rows = (_read(pid) for pid in pids)
    return ProcessTable((row for row in rows if row is not None), read_anonymous_bytes)


def _read(pid: int) -> ProcessRow | None:
    text = _contents(f"/proc/{pid}/stat")
    if not text:
        return None
    fields = text.rpartition(b")")[2].split()
    minor, major = int(fields[_MINOR]), int(fields[_MAJOR])
    children_minor, children_major = int(fields[_CHILDREN_MINOR]), int(fields[_CHILDREN_MAJOR])
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
        page_faults=minor + major,
        major_page_faults=major,
        children_page_faults=children_minor + children_major,
        children_major_page_faults=children_major,
    )


def _contents(path: str) -> bytes:
    """Return the contents of a file; nothing if its process is gone."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a thousand Path objects
            return file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
