"""The folders that the kernel shows cgroups as: made, written, read, emptied, removed."""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

PROCS = "cgroup.procs"


class CgroupFolders:
    """Plain access; errors are the kernel's (OSError). Making and removing again is no error."""

    def create(self, folder: Path) -> None:
        """Make a cgroup in one that is there."""
        with suppress(FileExistsError):
            folder.mkdir()

    def write(self, file: Path, text: str) -> None:
        """Set something; the file has to be there."""
        opened = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(opened, text.encode())
        finally:
            os.close(opened)

    def read(self, file: Path) -> str | None:
        """What a file says; None if it cannot be read, as when its cgroup is gone."""
        try:
            return file.read_text().strip()
        except OSError:
            return None

    def can_attach(self, folder: Path) -> bool:
        """Whether we may put processes into it."""
        return os.access(folder / PROCS, os.W_OK)

    def subtree(self, folder: Path) -> Sequence[Path]:
        """All cgroups in it and itself, what holds others after them; none if it is gone."""
        walked = os.walk(folder, topdown=False, onerror=_raise_unless_gone)
        return [Path(path) for path, _, _ in walked]

    def child_names(self, folder: Path) -> Sequence[str]:
        """The cgroups right in it."""
        try:
            return [entry.name for entry in os.scandir(folder) if entry.is_dir()]
        except FileNotFoundError:
            return []

    def remove(self, folder: Path) -> None:
        """Remove a cgroup, in which nothing may be left."""
        with suppress(FileNotFoundError):
            folder.rmdir()

    def pids(self, folder: Path) -> list[int]:
        """The processes that are in it, not in one of those below."""
        return [int(pid) for pid in (self.read(folder / PROCS) or "").split()]

    def kill(self, folder: Path) -> None:
        """Kill all that is in it and below; come back without waiting for the end of it."""
        try:
            self.write(folder / "cgroup.kill", "1")
        except OSError:  # version 1, or Linux before 5.14
            for path in self.subtree(folder):
                for pid in self.pids(path):
                    self._kill_process(path, pid)

    def _kill_process(self, folder: Path, pid: int) -> None:
        with suppress(ProcessLookupError):
            opened = os.pidfd_open(pid)
            try:
                # What is open stays what it is: only now a look at whether it is the one meant.
                if pid in self.pids(folder):
                    signal.pidfd_send_signal(opened, signal.SIGKILL)
            finally:
                os.close(opened)


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
