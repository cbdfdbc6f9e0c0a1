"""What a runtime left behind: pictures before and after, and the difference in words.

    become_subreaper()                        # once: orphans come to us, so that they can be found
    before = take_picture(folders=[root], cgroups="podstatus-test")
    ...
    assert what_is_left(before, take_picture(folders=[root], cgroups="podstatus-test")) == []

Only what descends from the process that takes the picture is looked at: the machine has others.
"""

import ctypes
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from podstatus.runtime.process.cgroups.model.mounts import parse_mounts
from podstatus.runtime.process.state.process_table import read_processes

_PR_SET_CHILD_SUBREAPER = 36
_DEAD = ("Z", "X")


class Seen(msgspec.Struct, frozen=True):
    """A process, and how to tell people which."""

    pid: int
    start_ticks: int
    dead: bool
    parent: int
    name: str
    parent_name: str

    @property
    def key(self) -> tuple[int, int, bool]:
        """Who has another parent by now is the same; who has died is not."""
        return self.pid, self.start_ticks, self.dead


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """All that a runtime could leave behind."""

    processes: frozenset[Seen]
    open_files: Mapping[str, int]
    """What the agent has open, by what it is; those that have no name of their own are counted."""
    paths: frozenset[str]
    cgroups: frozenset[str]


def become_subreaper() -> None:
    """Have those whose parents end become children of this process, not of the machine's first."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def wait_for_adopted(own: Iterable[int] = ()) -> None:
    """Let go of ended orphans that came to us, as the machine's first process would; not of `own`.

    If the agent runs in this very process, its children are `own`: it has to wait for them itself.
    """
    for row in read_processes().descendants(os.getpid()):
        if row.parent == os.getpid() and row.state in _DEAD and row.pid not in set(own):
            with suppress(ChildProcessError):
                os.waitpid(row.pid, os.WNOHANG)


def take_picture(
    *, agent: int | None = None, folders: Iterable[Path] = (), cgroups: str = ""
) -> Picture:
    """As things are now. `agent` is whose open files count, if not ours; `cgroups` is its name."""
    return Picture(
        processes=_processes(),
        open_files=_open_files(agent or os.getpid()),
        paths=frozenset(str(path) for folder in folders for path in _below(folder)),
        cgroups=frozenset(_cgroups(cgroups)) if cgroups else frozenset(),
    )


def what_is_left(before: Picture, after: Picture) -> list[str]:
    """What is there now and was not before, a sentence each."""
    known = {seen.key for seen in before.processes}
    new = sorted((seen for seen in after.processes if seen.key not in known), key=_by_pid)
    return [
        *map(_tell_process, new),
        *_tell_files(before.open_files, after.open_files),
        *(f"{path} is still there" for path in _tops(after.paths - before.paths)),
        *(f"cgroup {path} is still there" for path in _tops(after.cgroups - before.cgroups)),
    ]


def _by_pid(seen: Seen) -> int:
    return seen.pid


def _tell_process(seen: Seen) -> str:
    parent = f"{seen.parent} ({seen.parent_name})"
    if seen.dead:
        return f"process {seen.pid} ({seen.name}) is a zombie: {parent} does not wait for it"
    return f"process {seen.pid} ({seen.name}), a child of {parent}, still runs"


def _tell_files(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    more = Counter(after) - Counter(before)
    return [f"the agent still has open: {name}, {count}x" for name, count in sorted(more.items())]


def _tops(paths: Iterable[str]) -> list[str]:
    """Without what lies in another one: that goes without saying."""
    tops: list[str] = []
    for path in sorted(paths):
        if not any(path.startswith(f"{top}/") for top in tops):
            tops.append(path)
    return tops


def _processes() -> frozenset[Seen]:
    table = read_processes()
    return frozenset(
        Seen(
            pid=row.pid,
            start_ticks=row.start_ticks,
            dead=row.state in _DEAD,
            parent=row.parent,
            name=_name(row.pid),
            parent_name=_name(row.parent),
        )
        for row in table.descendants(os.getpid())
    )


def _name(pid: int) -> str:
    """The command in short; a zombie has only the name of its program."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
        found = command or Path(f"/proc/{pid}/comm").read_bytes()
    except OSError:
        return "gone"
    return found.decode(errors="replace").strip()[:120]


def _open_files(pid: int) -> dict[str, int]:
    names: Counter[str] = Counter()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # the one by which we look
            names[str(entry.readlink())] += 1
    del names[f"/proc/{pid}/fd"]
    return names


def _below(folder: Path) -> Iterable[Path]:
    """All in a folder, not what links in it lead to."""
    for path, folders, files in os.walk(folder):
        yield from (Path(path, name) for name in (*folders, *files))


def _cgroups(name: str) -> Iterable[str]:
    mounts = parse_mounts(Path("/proc/self/mountinfo").read_text())
    tops = {mount.mount_point for mount in (*mounts.v1.values(), mounts.v2) if mount is not None}
    for top in tops:
        for path, folders, _ in os.walk(top):
            yield from (
                f"{path}/{folder}" for folder in folders if name in (*Path(path).parts, folder)
            )
