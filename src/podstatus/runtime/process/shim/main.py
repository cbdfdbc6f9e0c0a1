"""The shim of a pod: forks a monitor for every launch, and leaves no processes behind.

Controlled by signals: SIGHUP starts new launches; SIGTERM ends all containers, then the shim.
"""

import fcntl
import gc
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from . import syscalls
from .container_monitor import ContainerMonitor
from .launches import LaunchQueue, record_lost_container, record_start_error
from .processes import children, kill_children
from .records import SHIM, LaunchSpec, is_sandbox_active, read_sandbox, shim_record, write_record
from .stderr_log import describe_error, log_error
from .wall_clock import wall_nanos

_SIGNALS = (signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD)

_FOLDER_POLL_SECONDS = 60.0
"""How soon the shim notices that the pod's folder was removed; no agent could find its containers
any more.
"""
_STRAY_POLL_SECONDS = 0.2
"""How soon processes that outlived their monitor are killed again; only while there are any."""


def main(arguments: Sequence[str]) -> int:
    """Run the shim; return the exit code."""
    try:
        folder, sandbox_id = arguments
    except ValueError:
        log_error("usage: shim_program.py POD_FOLDER SANDBOX_ID")
        return 2
    try:
        pod = Path(folder).resolve(strict=True)
        _daemonize()
        return Shim(pod, sandbox_id).run()
    except Exception as error:  # noqa: BLE001  reported as one line in the log
        log_error(f"the shim of {folder} ends: {describe_error(error)}")
        return 1


class Shim:
    """Runs one monitor per container of a sandbox."""

    def __init__(self, pod: Path, sandbox_id: str) -> None:
        self._pod, self._sandbox_id = pod, sandbox_id
        self._launches = LaunchQueue(pod / "containers", sandbox_id)
        self._monitors: dict[int, Path] = {}
        self._lost: list[Path] = []
        self._has_strays = self._launch_requested = self._is_ending = False

    def run(self) -> int:
        """Run until SIGTERM has been handled; return the exit code."""
        if not is_sandbox_active(self._pod, self._sandbox_id):
            return self._log_abandoned()
        lock = self._lock_pod()
        if read_sandbox(self._pod) == self._sandbox_id:
            log_error(f"sandbox {self._sandbox_id} already had a shim; use a new sandbox ID")
            return 1
        write_record(self._pod / SHIM, shim_record(self._sandbox_id))
        # Check again: an agent that gives up a sandbox first records that, then looks for its shim.
        if not is_sandbox_active(self._pod, self._sandbox_id):
            return self._log_abandoned()
        self._start_launches(lock)
        while not self._is_ending or self._monitors or self._has_strays:
            self._handle_signal(self._wait_signal(), lock)
        return 0

    def _log_abandoned(self) -> int:
        log_error(f"sandbox {self._sandbox_id} was given up before its shim started")
        return 1

    def _lock_pod(self) -> int:
        """Lock the pod's folder: a previous shim may still be ending."""
        lock = os.open(self._pod, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def _wait_signal(self) -> int:
        seconds = _STRAY_POLL_SECONDS if self._has_strays else _FOLDER_POLL_SECONDS
        info = signal.sigtimedwait(_SIGNALS, seconds)
        return signal.SIGCHLD if info is None else info.si_signo

    def _handle_signal(self, number: int, lock: int) -> None:
        if number == signal.SIGHUP:
            self._launch_requested = True
        if number == signal.SIGTERM or not self._pod.exists():
            self._terminate()
        self._reap()
        # On a full disk, retry at each wake-up: a waiting agent signals every half minute.
        self._lost = [folder for folder in self._lost if not record_lost_container(folder)]
        # Remaining processes of a container must be gone before its next attempt starts.
        if self._launch_requested and not self._has_strays and not self._is_ending:
            self._launch_requested = False
            self._start_launches(lock)

    def _terminate(self) -> None:
        if not self._is_ending:
            self._is_ending = True
            for monitor in self._monitors:
                os.kill(monitor, signal.SIGTERM)

    def _start_launches(self, lock: int) -> None:
        shim = os.getpid()
        for folder, launch in self._launches.take_new():
            # Exclude existing objects from garbage collection: monitors share these pages.
            gc.collect()
            gc.freeze()
            try:
                monitor = os.fork()
            except OSError as error:
                record_start_error(
                    folder,
                    f"fork: {os.strerror(error.errno or 0).lower()}",
                    finished_at=wall_nanos(),
                )
                continue
            if monitor == 0:
                os.close(lock)
                _run_monitor(folder, launch, shim=shim)
            self._monitors[monitor] = folder

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._has_strays = False
                return
            if pid == 0:
                break
            self._on_monitor_exit(pid, status)
        # A monitor that exits with 0 leaves no processes; no search is needed then.
        if self._has_strays:
            strays = [pid for pid in children() if pid not in self._monitors]
            kill_children(strays)
            self._has_strays = bool(strays)

    def _on_monitor_exit(self, pid: int, status: int) -> None:
        folder = self._monitors.pop(pid, None)
        if folder is None or status != 0:
            self._has_strays = True
        if folder is not None and status != 0:
            code = os.waitstatus_to_exitcode(status)
            log_error(f"the monitor of {folder.name} ended with {code}; killing its container")
            self._lost.append(folder)


def _run_monitor(folder: Path, launch: LaunchSpec, *, shim: int) -> None:
    code = 1
    try:
        ContainerMonitor(folder, launch, shim=shim).run()
        code = 0
    except BaseException as error:  # noqa: BLE001  this process must not continue as a shim
        log_error(f"the monitor of {folder.name} ends: {describe_error(error)}")
    finally:
        os._exit(code)


def _daemonize() -> None:
    """Detach from the parent's session and files, and block the signals to wait for."""
    if os.getsid(0) != os.getpid():
        # A process group leader cannot create a session; its child can.
        if os.getpgrp() == os.getpid() and os.fork() != 0:
            os._exit(0)
        os.setsid()
    syscalls.set_process_name("podstatus-shim")
    syscalls.set_child_subreaper()
    if os.geteuid() == 0:
        # Inherited by the monitors, which are forked from here.
        syscalls.set_not_dumpable()
    os.chdir("/")
    os.umask(0o077)
    signal.pthread_sigmask(signal.SIG_SETMASK, _SIGNALS)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _close_files()


def _close_files() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    os.closerange(3, highest + 1)
