"""Restart an agent when it dies, and record why.

The agent is a child process. Exit code 0 is a requested stop, exit code 2 an invalid
configuration: both are final. Any other exit is followed by a restart with exponential back-off.
"""

import asyncio
import os
import random
import signal
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from podstatus.agent.daemon.restarts_file import RESTARTS_FILE, AgentExit
from podstatus.agent.settings.load import RESTART_REASON_VARIABLE
from podstatus.base.atomic_file import replace_file
from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.base.programs import child_environment
from podstatus.base.timeouts import wait_event_or_timeout
from podstatus.kube.scalars.time import Time

_FINAL_EXIT_CODES = (0, 2)
_START_FAILED_CODE = 1
_BACKOFF = Backoff(initial_seconds=1.0, max_seconds=300.0)
_BACKOFF_RESET_SECONDS = 600.0
"""Reset the back-off after this much uptime, as the kubelet does for a container."""
_MAX_RECORDS = 100
_MAX_LINES = 20
_MAX_LINE_BYTES = 500


class Supervisor:
    """Runs an agent as a child process and restarts it."""

    def __init__(
        self,
        command: Sequence[str],
        root_dir: Path,
        *,
        clock: Clock,
        write_stderr: Callable[[bytes], object],
        backoff: Backoff = _BACKOFF,
    ) -> None:
        """`write_stderr` receives the child's standard error and the supervisor's messages."""
        self._command = command
        self._records_path = root_dir / RESTARTS_FILE
        self._clock = clock
        self._write_stderr = write_stderr
        self._backoff = backoff
        self._environment = child_environment(os.environ)
        self._process: Process | None = None
        self._stopped = asyncio.Event()

    async def run(self) -> int:
        """Run until the agent exits for good; return its exit code."""
        while True:
            started = self._clock.monotonic()
            try:
                code, lines = await self._run_once()
            except OSError as error:  # for example: out of memory
                code, lines = _START_FAILED_CODE, (f"cannot start it: {error}",)
            if self._stopped.is_set() or code in _FINAL_EXIT_CODES:
                return max(code, 0)
            agent_exit = self._record_exit(code, lines, started)
            self._write_stderr(f"podstatus: {agent_exit}; restarting it\n".encode())
            self._environment[RESTART_REASON_VARIABLE] = str(agent_exit)
            await wait_event_or_timeout(self._stopped, self._clock, agent_exit.restart_in_seconds)
            if self._stopped.is_set():
                return 0

    def stop(self, number: int) -> None:
        """Forward a signal to the agent and do not restart it."""
        self._stopped.set()
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def forward_signals(self) -> None:
        """Install handlers that call `stop` for SIGINT, SIGTERM and SIGHUP."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.stop, number)

    async def _run_once(self) -> tuple[int, tuple[str, ...]]:
        # A new session: Ctrl-C reaches the child only once, through `stop`. The pipe to its
        # standard input closes when this process dies, and the child stops then.
        process = self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=PIPE, stderr=PIPE, env=self._environment, start_new_session=True
        )
        if self._stopped.is_set():
            process.terminate()
        lines = await self._read_last_lines(process)
        code = await process.wait()
        if process.stdin is not None:
            process.stdin.close()
        return code, lines

    async def _read_last_lines(self, process: Process) -> tuple[str, ...]:
        assert process.stderr is not None  # noqa: S101 - started with a pipe
        tail: deque[bytes] = deque(maxlen=_MAX_LINES)
        rest = b""
        while chunk := await process.stderr.read(65536):
            self._write_stderr(chunk)
            *whole, rest = (rest + chunk).split(b"\n")
            tail.extend(line[:_MAX_LINE_BYTES] for line in whole if line.strip())
            rest = rest[:_MAX_LINE_BYTES]
        lines = [*tail, rest] if rest.strip() else [*tail]
        return tuple(line.decode(errors="replace").rstrip() for line in lines)

    def _record_exit(self, code: int, lines: tuple[str, ...], started: int) -> AgentExit:
        lived = (self._clock.monotonic() - started) / 1e9
        self._backoff = self._backoff.failed_after(lived, reset_after=_BACKOFF_RESET_SECONDS)
        wait = self._backoff.delay(random.random())  # noqa: S311 - not a secret
        agent_exit = AgentExit(
            at=Time.from_unix_nanos(self._clock.now()).truncated().wire or "",
            lived_seconds=round(lived, 3),
            exit_code=code if code >= 0 else None,
            signal=_signal_name(-code) if code < 0 else None,
            restart_in_seconds=round(wait, 3),
            last_lines=lines,
        )
        self._append_record(agent_exit)
        return agent_exit

    def _append_record(self, agent_exit: AgentExit) -> None:
        try:
            records = (
                self._records_path.read_bytes().splitlines() if self._records_path.exists() else []
            )
            lines = [*records[-_MAX_RECORDS + 1 :], msgspec.json.encode(agent_exit)]
            self._records_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._records_path, b"".join(line + b"\n" for line in lines))
        except OSError as error:
            self._write_stderr(
                f"podstatus: cannot record the exit in {self._records_path}: {error}\n".encode()
            )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
