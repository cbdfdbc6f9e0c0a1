"""Access to the cgroup filesystem."""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from podstatus.runtime.process.paths.safe_paths import open_descriptor

PROCS = "cgroup.procs"
_BLOCK_BYTES = 65_536


class CgroupFolders:
    """Plain file access. Raises OSError as the kernel does; create and remove are idempotent."""

    def create(self, folder: Path) -> None:
        """Create a cgroup; its parent must exist."""
        with suppress(FileExistsError):
            folder.mkdir()

    def write(self, file: Path, text: str) -> None:
        """Write to an existing interface file."""
        with open_descriptor(file, os.O_WRONLY | os.O_CLOEXEC) as descriptor:
            os.write(descriptor, text.encode())

    def read(self, file: Path | str) -> str | None:
        """Return the contents of a file; None if it is unreadable, as when its cgroup is gone."""
        # Thousands of files per reading of the usage: an eighth of the time of Path.read_text.
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            blocks = list(iter(lambda: os.read(descriptor, _BLOCK_BYTES), b""))
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return b"".join(blocks).decode().strip()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def can_attach(self, folder: Path) -> bool:
        """Return whether processes may be moved into it."""
        return os.access(folder / PROCS, os.W_OK)

    def subtree(self, folder: Path) -> Sequence[Path]:
        """Return a cgroup and all its descendants, children first; empty if it is gone."""
        walked = os.walk(folder, topdown=False, onerror=_raise_unless_gone)
        return [Path(path) for path, _, _ in walked]

    def child_names(self, folder: Path) -> Sequence[str]:
        try:
            return [entry.name for entry in os.scandir(folder) if entry.is_dir()]
        except FileNotFoundError:
            return []

    def remove(self, folder: Path) -> None:
        """Remove a cgroup; it must be empty."""
        with suppress(FileNotFoundError):
            folder.rmdir()

    def pids(self, folder: Path) -> list[int]:
        """Return the processes in the cgroup itself, without its descendants."""
        return [int(pid) for pid in (self.read(folder / PROCS) or "").split()]

    def kill(self, folder: Path) -> None:
        """Kill all processes in the cgroup and its descendants, without waiting for their exit."""
        try:
            self.write(folder / "cgroup.kill", "1")
        except OSError:  # version 1, or Linux before 5.14
            for path in self.subtree(folder):
                for pid in self.pids(path):
                    self._kill_process(path, pid)

    def _kill_process(self, folder: Path, pid: int) -> None:
        with suppress(ProcessLookupError):
            pidfd = os.pidfd_open(pid)
            try:
                # Only now check the membership: a pidfd never refers to another process.
                if pid in self.pids(folder):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            finally:
                os.close(pidfd)


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
