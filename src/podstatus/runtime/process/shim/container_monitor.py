"""The monitor of a container: starts its command, writes its log, records its exit.

A process of its own, forked from the shim, so that all its descendants belong to this container.
"""

import os
import select
import signal
import time
from contextlib import suppress
from pathlib import Path

from . import syscalls
from .bubblewrap import BubblewrapProcess
from .processes import Process, find_process, kill_tree, signal_process
from .records import (
    EXIT,
    LOG,
    STARTED,
    Json,
    LaunchSpec,
    exit_record,
    mark_starting,
    reserve_space,
    start_record,
    write_record,
)
from .rotating_log_file import LogWriter
from .signal_queue import SignalQueue
from .start import StartFailedError, start_program, unsandboxed_program
from .stderr_log import describe_error, log_error
from .streams import ContainerStreams, OutputPump, open_streams
from .wall_clock import wall_nanos

_START_ERROR = 128
"""Exit code of a command that could not be executed, as in containerd."""

_SHIM_ENDED = signal.SIGUSR1

_DRAIN_SECONDS = 1.0
_DRAIN_BYTES = 2 * 2**20
"""Limits for reading a pipe that a process outside of the container holds open, too. A pipe holds
at most 1 MiB, so the container's own output is always read completely.
"""

_SMALL_READ_BYTES, _READ_DELAY_SECONDS = 4096, 0.005
"""After a small read, wait a few milliseconds: output line by line is read in larger chunks, at
less cost.
"""

_PROMPT_TIMEOUT_MS = 30.0
"""How long an unterminated line on a terminal waits for its end; it may be a prompt."""

_MAX_POLL_SECONDS = 0.1
"""Maximum interval of checks on bubblewrap; the first ones are milliseconds apart."""

_RETRY_SECONDS = 1.0
_RECORD_TIMEOUT_SECONDS = 5.0
"""How long the monitor tries to record an exit after it was asked to end."""


class ContainerMonitor:
    """Runs one container, from its launch to its exit."""

    def __init__(self, folder: Path, launch: LaunchSpec, *, shim: int) -> None:
        self._folder, self._launch, self._shim = folder, launch, shim
        self._log = LogWriter(
            folder / LOG, max_bytes=launch.log_max_bytes, max_files=launch.log_max_files
        )
        self._signals = SignalQueue(signal.SIGCHLD, signal.SIGTERM, signal.SIGWINCH, _SHIM_ENDED)
        self._streams = ContainerStreams([], None, None)
        self._sandbox: BubblewrapProcess | None = None
        self._pid = 0
        self._status: int | None = None
        self._started_at = self._ended_at = 0
        self._poll_seconds = 0.001
        self._next_read = 0.0
        self._must_end = self._shim_is_gone = False
        self._pending_start: Json | None = None
        self._logged_files: set[str] = set()

    def run(self) -> None:
        """Return when no process of the container is left and its exit is recorded."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._signals.start()
        # Own process group: killing the shim's group must not kill the processes that clean up.
        os.setpgid(0, 0)
        syscalls.set_process_name("podstatus-keep")
        syscalls.set_child_subreaper()
        if not syscalls.set_parent_death_signal(self._shim, _SHIM_ENDED):
            return
        with suppress(OSError):  # otherwise the exit is recorded once there is space
            reserve_space(self._folder / EXIT)
        try:
            mark_starting(self._folder / STARTED)
            if os.getppid() != self._shim:
                return  # an agent may have found the shim gone and concluded that nothing ran
            self._start()
        except Exception as error:  # noqa: BLE001  any error means that it was not started
            reason = str(error) if isinstance(error, StartFailedError) else describe_error(error)
            kill_tree(self._reap, self._wait)
            self._record_exit(_start_error_record(reason))
            return
        try:
            self._monitor()
            has_ended = self._status is not None
        finally:
            kill_tree(self._reap, self._wait)
        # If it was killed because the shim is gone, there is no exit of its own to record.
        if has_ended:
            self._record_exit(self._exit_record())

    def _start(self) -> None:
        self._streams, ends = open_streams(self._folder, self._launch, self._log)
        try:
            if self._launch.bubblewrap is None:
                self._pid = start_program(unsandboxed_program(self._launch), self._launch, ends)
                self._on_started(find_process(self._pid) or Process(self._pid, 0, 0))
                return
            self._sandbox = BubblewrapProcess(self._launch)
            self._pid = start_program(self._sandbox.program, self._launch, ends)
            self._sandbox.on_started(self._pid)
        finally:
            ends.close()

    def _monitor(self) -> None:
        """Pump streams until the command has ended or the shim is gone."""
        while self._status is None and not self._shim_is_gone:
            self._run_once()

    def _run_once(self) -> None:
        poll = select.poll()
        poll.register(self._signals.file, select.POLLIN)
        timeout = self._register_streams(poll) if self._started_at else self._poll_sandbox()
        if self._pending_start is not None and not self._record_start():
            timeout = _RETRY_SECONDS * 1000 if timeout is None else timeout
        ready = {file for file, _ in poll.poll(timeout)}
        if timeout == _PROMPT_TIMEOUT_MS and not ready:
            self._streams.outputs[0].flush()
        if self._started_at:
            self._pump(ready)
        self._handle_signals(self._signals.take())

    def _poll_sandbox(self) -> float:
        """Check whether bubblewrap has executed the command; return the next timeout in ms."""
        sandbox = self._sandbox
        if sandbox is not None and sandbox.poll() and sandbox.command is not None:
            self._on_started(sandbox.command)
            return 0
        self._poll_seconds = min(self._poll_seconds * 1.3, _MAX_POLL_SECONDS)
        return self._poll_seconds * 1000

    def _on_started(self, command: Process) -> None:
        self._started_at = self._ended_at or wall_nanos()
        self._pending_start = start_record(command, self._started_at)
        self._record_start()

    def _record_start(self) -> bool:
        if self._pending_start is not None and self._write(STARTED, self._pending_start):
            self._pending_start = None
        return self._pending_start is None

    def _register_streams(self, poll: select.poll) -> float | None:
        """Register the streams to wait for; return the timeout in ms, None for none."""
        delay = self._next_read - time.monotonic()
        if delay > 0:
            return delay * 1000
        events_by_file: dict[int, int] = {}
        outputs = [output for output in self._streams.outputs if not output.has_ended]
        for output in outputs:
            events_by_file[output.file] = select.POLLIN
        if (source := self._streams.input) is not None:
            if source.source is not None:
                events_by_file[source.source] = select.POLLIN
            if source.target is not None:
                events_by_file[source.target] = (
                    events_by_file.get(source.target, 0) | select.POLLOUT
                )
        for file, events in events_by_file.items():
            poll.register(file, events)
        is_prompt = self._launch.tty and any(output.has_partial for output in outputs)
        return _PROMPT_TIMEOUT_MS if is_prompt else None

    def _pump(self, ready: set[int]) -> None:
        source = self._streams.input
        if source is not None and ready & {source.source, source.target}:
            source.pump()
        for output in self._streams.outputs:
            if output.file in ready and output.pump() < _SMALL_READ_BYTES:
                self._next_read = time.monotonic() + _READ_DELAY_SECONDS

    def _handle_signals(self, signals: set[int]) -> None:
        if signal.SIGCHLD in signals:
            self._reap()
        if signal.SIGWINCH in signals:
            self._streams.resize(self._folder)
        if _SHIM_ENDED in signals and os.getppid() != self._shim:
            self._shim_is_gone = True
        if signal.SIGTERM in signals:
            self._must_end = True
            self._kill()

    def _wait(self, seconds: float) -> None:
        self._signals.wait(seconds)
        self._handle_signals(self._signals.take())

    def _kill(self) -> None:
        """Kill the command, but not bubblewrap, which reports the exit code."""
        if self._status is not None:
            return
        if self._started_at and self._sandbox is not None and self._sandbox.command is not None:
            signal_process(self._sandbox.command, signal.SIGKILL)
        else:
            os.kill(self._pid, signal.SIGKILL)

    def _reap(self) -> bool:
        """Reap ended children; return whether any child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._pid:
                self._status, self._ended_at = status, wall_nanos()

    def _exit_record(self) -> Json:
        """Return the exit record; call after all processes have ended."""
        sandbox = self._sandbox
        if sandbox is not None and not self._started_at:
            if not sandbox.poll():
                output = self._streams.outputs[-1].read()
                if message := sandbox.start_error(output):
                    return _start_error_record(message)
                self._streams.outputs[-1].feed(output)
            self._on_started(sandbox.command or Process(self._pid, 0, 0))
        self._drain()
        code = _exit_code(self._status or 0)
        if sandbox is not None and sandbox.exit_code is not None:
            code = sandbox.exit_code
        return exit_record(
            code,
            self._reason(code),
            started_at=self._started_at,
            finished_at=max(self._ended_at, self._started_at),  # the clock may have been set back
        )

    def _reason(self, code: int) -> str:
        if code == 128 + signal.SIGKILL and _was_oom_killed(self._launch.oom_events):
            return "OOMKilled"
        return "Error" if code else "Completed"

    def _drain(self) -> None:
        """Write the remaining output of the pipes to the log."""
        deadline = time.monotonic() + _DRAIN_SECONDS
        for output in self._streams.outputs:
            _drain_output(output, deadline)
            output.flush()
        self._log.close()

    def _write(self, name: str, record: Json) -> bool:
        try:
            # An agent that found the shim gone may have recorded an exit and reported it already.
            write_record(self._folder / name, record, once=name == EXIT)
        except OSError as error:
            if name not in self._logged_files:
                log_error(f"cannot write {self._folder / name}: {error}")
            self._logged_files.add(name)
            return False
        return True

    def _record_exit(self, record: Json) -> None:
        """Record the exit; on a full disk, retry, since no other process knows it."""
        until = None
        while not self._write(EXIT, record) and self._folder.exists():
            self._wait(_RETRY_SECONDS)
            if self._must_end and until is None:
                until = time.monotonic() + _RECORD_TIMEOUT_SECONDS
            if self._shim_is_gone or (until is not None and time.monotonic() > until):
                return


def _start_error_record(reason: str) -> Json:
    return exit_record(_START_ERROR, "StartError", message=reason, finished_at=wall_nanos())


def _drain_output(output: OutputPump, deadline: float) -> None:
    """Read to the end of the output, or to the limits if another process holds it open."""
    poll, count = select.poll(), 0
    poll.register(output.file, select.POLLIN)
    while not output.has_ended and count < _DRAIN_BYTES:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return
        count += output.pump()


def _exit_code(status: int) -> int:
    """Return the exit code, 128 + n for a process killed by signal n."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _was_oom_killed(events: str) -> bool:
    """Return whether the cgroup's event file has a nonzero `oom_kill`; empty path: no file."""
    if not events:
        return False
    try:
        lines = Path(events).read_text().splitlines()
    except OSError:
        return False
    counts = [line.split()[1] for line in lines if line.startswith("oom_kill ")]
    return any(count != "0" for count in counts)
