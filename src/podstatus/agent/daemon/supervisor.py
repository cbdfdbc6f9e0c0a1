"""Restart an agent when it dies or hangs, and record why.

The agent is a child process. Exit code 0 is a requested stop, exit code 2 an invalid
configuration: both are final. Any other exit is followed by a restart with exponential back-off.

The agent reports its health once a second, and is ended by force if it hangs: `decide.hang`.
"""

import asyncio
import os
import random
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from podstatus.agent.daemon.agent_child import AgentChild
from podstatus.agent.daemon.decide.hang import Hang, HangLimits, HangWatch, HealthReport
from podstatus.agent.daemon.restarts_file import RESTARTS_FILE, STACKS_FILE, AgentExit
from podstatus.agent.daemon.sd_notify import SystemdService
from podstatus.agent.settings.load import RESTART_REASON_VARIABLE
from podstatus.base.atomic_file import replace_file
from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.base.programs import child_environment
from podstatus.base.timeouts import wait_event_or_timeout
from podstatus.kube.scalars.time import Time

CHECK_SECONDS = 0.5
"""Interval of checks whether the agent hangs."""
_FINAL_EXIT_CODES = (0, 2)
_START_FAILED_CODE = 1
_BACKOFF = Backoff(initial_seconds=1.0, max_seconds=300.0)
_BACKOFF_RESET_SECONDS = 600.0
"""Reset the back-off after this much uptime, as the kubelet does for a container."""
_MAX_RECORDS = 100


class Supervisor:
    """Runs an agent as a child process and restarts it."""

    def __init__(
        self,
        command: Sequence[str],
        root_dir: Path,
        *,
        clock: Clock,
        write_stderr: Callable[[bytes], object],
        systemd: SystemdService,
        backoff: Backoff = _BACKOFF,
        limits: HangLimits | None = None,
    ) -> None:
        """`write_stderr` receives the child's standard error and the supervisor's messages."""
        self._command = command
        self._root_dir = root_dir
        self._clock = clock
        self._write_stderr = write_stderr
        self._systemd = systemd
        self._backoff = backoff
        self._limits = limits or HangLimits()
        self._environment = child_environment(os.environ)
        self._child: AgentChild | None = None
        self._watch = HangWatch.start(clock.monotonic())
        self._hang: Hang | None = None
        self._replaced_stalled_at: int | None = None
        self._stopped = asyncio.Event()

    async def run(self) -> int:
        """Run until the agent exits for good; return its exit code."""
        async with asyncio.TaskGroup() as tasks:
            checking = tasks.create_task(self._check_periodically())
            code = await self._run()
            checking.cancel()
        return code

    async def _run(self) -> int:
        while not self._stopped.is_set():
            started = self._clock.monotonic()
            code, lines = await self._run_child()
            if self._stopped.is_set() or code in _FINAL_EXIT_CODES:
                return max(code, 0)
            agent_exit = self._record_exit(code, lines, started)
            self._announce_restart(agent_exit)
            await wait_event_or_timeout(self._stopped, self._clock, agent_exit.restart_in_seconds)
        return 0

    async def _run_child(self) -> tuple[int, tuple[str, ...]]:
        """Run an agent; return its exit code and its last lines."""
        child = self._child = AgentChild(self._write_stderr, self._add_report)
        self._watch, self._hang = HangWatch.start(self._clock.monotonic()), None
        try:
            code = await child.run(self._command, self._environment)
        except OSError as error:  # for example: out of memory
            return _START_FAILED_CODE, (f"cannot start it: {error}",)
        finally:
            self._child = None
        if child.stacks:
            self._write_file(STACKS_FILE, lambda: child.stacks)
        return code, child.last_lines

    def stop(self, number: int) -> None:
        """Forward a signal to the agent and do not restart it."""
        self._stopped.set()
        self._systemd.report(HealthReport(stopping=True, status="stopping"))
        if self._child is not None:
            self._child.send_signal(number)

    def forward_signals(self) -> None:
        """Install handlers that call `stop` for SIGINT, SIGTERM and SIGHUP."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.stop, number)

    def _add_report(self, report: HealthReport) -> None:
        self._watch = self._watch.add_report(report, self._clock.monotonic())
        self._systemd.report(report)

    async def _check_periodically(self) -> None:
        while True:
            await self._clock.wait(CHECK_SECONDS)
            await self.check_once()

    async def check_once(self) -> None:
        """End the agent by force if it hangs; if not, or if there is none, ping systemd."""
        now = self._clock.monotonic()
        self._watch = self._watch.add_check(now, self._limits)
        child, hang = self._child, self._find_hang(now)
        if hang is None or child is None:
            self._systemd.ping()
        elif self._hang is None:
            self._hang = hang
            if hang.by_service:
                self._replaced_stalled_at = now
            self._write_stderr(f"podstatus: the agent hangs: {hang.reason}; ending it\n".encode())
            await child.abort(self._limits.abort)

    def _find_hang(self, now: int) -> Hang | None:
        if self._child is None or not self._child.is_running:
            return None
        return self._watch.find_hang(
            now, self._limits, replaced_stalled_at=self._replaced_stalled_at
        )

    def _announce_restart(self, agent_exit: AgentExit) -> None:
        self._write_stderr(f"podstatus: {agent_exit}; restarting it\n".encode())
        self._systemd.report(HealthReport(status=f"restarting: {agent_exit}"))
        self._environment[RESTART_REASON_VARIABLE] = str(agent_exit)

    def _record_exit(self, code: int, lines: tuple[str, ...], started: int) -> AgentExit:
        lived = (self._clock.monotonic() - started) / 1e9
        self._backoff = self._backoff.failed_after(lived, reset_after=_BACKOFF_RESET_SECONDS)
        wait = self._backoff.delay(random.random())  # noqa: S311 - not a secret
        agent_exit = AgentExit(
            at=Time.from_unix_nanos(self._clock.now()).truncated().wire or "",
            lived_seconds=round(lived, 3),
            exit_code=code if code >= 0 else None,
            signal=_signal_name(-code) if code < 0 else None,
            hung=self._hang.reason if self._hang else "",
            restart_in_seconds=round(wait, 3),
            last_lines=lines,
        )
        self._append_record(agent_exit)
        return agent_exit

    def _append_record(self, agent_exit: AgentExit) -> None:
        path = self._root_dir / RESTARTS_FILE

        def content() -> bytes:
            records = path.read_bytes().splitlines() if path.exists() else []
            lines = [*records[-_MAX_RECORDS + 1 :], msgspec.json.encode(agent_exit)]
            return b"".join(line + b"\n" for line in lines)

        self._write_file(RESTARTS_FILE, content)

    def _write_file(self, name: str, content: Callable[[], bytes]) -> None:
        path = self._root_dir / name
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(path, content())
        except OSError as error:
            message = f"podstatus: cannot record the exit in {path}: {error}\n"
            self._write_stderr(message.encode())


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
