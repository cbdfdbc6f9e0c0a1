"""The shim of a pod: forks a keeper for every launch, and leaves nothing behind.

Asked by signals: SIGHUP, there is something to launch; SIGTERM, end all containers, then yourself.
"""

import fcntl
import gc
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from . import syscalls
from .container_monitor import Keeper
from .kill_tree import kill_children
from .launches import Launches, record_lost, refuse
from .processes import children
from .records import SHIM, Launch, is_wanted, read_sandbox, shim_record, write_record
from .stderr_log import complain, describe
from .wall_clock import wall_nanos

_SIGNALS = (signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD)

_FOLDER_SECONDS = 60.0
"""How soon it is noticed that somebody has removed the pod's folder: no agent would ever find the
containers again."""
_STRAY_SECONDS = 0.2
"""How soon what outlived its keeper is shot at again; only while there is any."""


def main(arguments: Sequence[str]) -> int:
    """Run the shim; the exit code."""
    try:
        folder, sandbox_id = arguments
    except ValueError:
        complain("usage: run_shim.py POD_FOLDER SANDBOX_ID")
        return 2
    try:
        pod = Path(folder).resolve(strict=True)
        _stand_alone()
        return Shim(pod, sandbox_id).run()
    except Exception as error:  # noqa: BLE001  one line for whoever looks
        complain(f"the shim of {folder} ends: {describe(error)}")
        return 1


class Shim:
    """Has a keeper for each container of a sandbox."""

    def __init__(self, pod: Path, sandbox_id: str) -> None:
        self._pod, self._sandbox_id = pod, sandbox_id
        self._launches = Launches(pod / "containers", sandbox_id)
        self._keepers: dict[int, Path] = {}
        self._lost: list[Path] = []
        self._has_strays = self._is_asked = self._is_ending = False

    def run(self) -> int:
        """Until it is told to end."""
        if not is_wanted(self._pod, self._sandbox_id):
            return self._too_late()
        lock = self._wait_for_the_last()
        if read_sandbox(self._pod) == self._sandbox_id:
            complain(f"sandbox {self._sandbox_id} had its shim already; a new one needs a new name")
            return 1
        write_record(self._pod / SHIM, shim_record(self._sandbox_id))
        # Only now: an agent that gives up a sandbox says so first and looks for its shim then.
        if not is_wanted(self._pod, self._sandbox_id):
            return self._too_late()
        self._launch(lock)
        while not self._is_ending or self._keepers or self._has_strays:
            self._heed(self._wait(), lock)
        return 0

    def _too_late(self) -> int:
        complain(f"sandbox {self._sandbox_id} was given up before its shim came up")
        return 1

    def _wait_for_the_last(self) -> int:
        """One shim at a time: another one may still be ending."""
        lock = os.open(self._pod, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def _wait(self) -> int:
        seconds = _STRAY_SECONDS if self._has_strays else _FOLDER_SECONDS
        told = signal.sigtimedwait(_SIGNALS, seconds)
        return signal.SIGCHLD if told is None else told.si_signo

    def _heed(self, number: int, lock: int) -> None:
        if number == signal.SIGHUP:
            self._is_asked = True
        if number == signal.SIGTERM or not self._pod.exists():
            self._end()
        self._reap()
        # On a full disk it is tried again: an agent that waits for it asks every half minute.
        self._lost = [folder for folder in self._lost if not record_lost(folder)]
        # What is left of a container must not meet the next attempt at it.
        if self._is_asked and not self._has_strays and not self._is_ending:
            self._is_asked = False
            self._launch(lock)

    def _end(self) -> None:
        if not self._is_ending:
            self._is_ending = True
            for keeper in self._keepers:
                os.kill(keeper, signal.SIGTERM)

    def _launch(self, lock: int) -> None:
        shim = os.getpid()
        for folder, launch in self._launches.new():
            # What is here by now will not be looked through again: keepers share its memory.
            gc.collect()
            gc.freeze()
            try:
                keeper = os.fork()
            except OSError as error:
                refuse(
                    folder, f"fork: {os.strerror(error.errno or 0).lower()}", moment=wall_nanos()
                )
                continue
            if keeper == 0:
                os.close(lock)
                _keep(folder, launch, shim=shim)
            self._keepers[keeper] = folder

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._has_strays = False
                return
            if pid == 0:
                break
            self._note_end(pid, status)
        # A keeper that ends as it should leaves none; then there is nothing to look for.
        if self._has_strays:
            strays = [pid for pid in children() if pid not in self._keepers]
            kill_children(strays)
            self._has_strays = bool(strays)

    def _note_end(self, pid: int, status: int) -> None:
        folder = self._keepers.pop(pid, None)
        if folder is None or status != 0:
            self._has_strays = True
        if folder is not None and status != 0:
            code = os.waitstatus_to_exitcode(status)
            complain(f"the keeper of {folder.name} ended with {code}; its container is killed")
            self._lost.append(folder)


def _keep(folder: Path, launch: Launch, *, shim: int) -> None:
    code = 1
    try:
        Keeper(folder, launch, shim=shim).run()
        code = 0
    except BaseException as error:  # noqa: BLE001  this process must not go on as a shim
        complain(f"the keeper of {folder.name} ends: {describe(error)}")
    finally:
        os._exit(code)


def _stand_alone() -> None:
    """Be nobody's child, hold nobody's files, and wait for signals instead of being hit."""
    if os.getsid(0) != os.getpid():
        # The leader of a group cannot begin a session; its child can.
        if os.getpgrp() == os.getpid() and os.fork() != 0:
            os._exit(0)
        os.setsid()
    syscalls.set_name("podstatus-shim")
    syscalls.adopt_orphans()
    if os.geteuid() == 0:
        # Also for the keepers, which are forked from here.
        syscalls.hide_memory()
    os.chdir("/")
    os.umask(0o077)
    signal.pthread_sigmask(signal.SIG_SETMASK, _SIGNALS)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _close_files()


def _close_files() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    os.closerange(3, highest + 1)
