"""All processes of the machine in one look at /proc: who came from whom, and what they used."""

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from podstatus.runtime.process.records.models import ProcessIdentity
from podstatus.runtime.process.state.process_identity import boot_id

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Among the fields of /proc/<pid>/stat behind the name, which may hold anything; see proc(5).
_STATE, _PARENT, _USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM = 0, 1, 11, 12, 13, 14
_THREADS, _START, _RESIDENT = 17, 19, 21


class ProcessRow(msgspec.Struct, frozen=True, gc=False):
    """A process at one moment."""

    pid: int
    parent: int
    state: str
    """One letter; `Z` is a zombie."""
    start_ticks: int
    own_seconds: float
    """Of processor time."""
    children_seconds: float
    """Of its children that it has waited for, and theirs."""
    threads: int
    resident_bytes: int


class ProcessTable:
    """The processes, by pid and by parent."""

    def __init__(self, rows: Iterable[ProcessRow]) -> None:
        self.rows: Mapping[int, ProcessRow] = {row.pid: row for row in rows}
        self._children: dict[int, list[ProcessRow]] = defaultdict(list)
        for row in self.rows.values():
            self._children[row.parent].append(row)

    def find(self, process: ProcessIdentity) -> ProcessRow | None:
        """The process, if it is still there."""
        row = self.rows.get(process.pid)
        if row is None or row.start_ticks != process.start_ticks or process.boot_id != boot_id():
            return None
        return row

    def descendants(self, pid: int) -> list[ProcessRow]:
        """All that came from a process and still has it as an ancestor; not itself."""
        found: list[ProcessRow] = []
        waiting = [pid]
        while waiting:
            children = self._children.get(waiting.pop(), ())
            found += children
            waiting += [row.pid for row in children]
        return found


def read_processes(proc: Path = Path("/proc")) -> ProcessTable:
    """Look once at all of them; those that end meanwhile are left out."""
    names = os.listdir(proc)  # noqa: PTH208 - a thousand Path objects are not free
    found = (_read(f"{proc}/{name}/stat", int(name)) for name in names if name.isdecimal())
    return ProcessTable(row for row in found if row is not None)


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
