"""The supervisor, with small programs that hang in every way that is known."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from podstatus.agent.daemon.decide.hang import HangLimits
from podstatus.agent.daemon.sd_notify import SystemdService
from podstatus.agent.daemon.supervisor import Supervisor
from podstatus.base.backoff import Backoff
from podstatus.base.system_clock import SystemClock
from tests.support.processes.agent_process import until
from tests.support.processes.systemd_socket import SystemdSocket

QUICK = HangLimits(silent=1.5, abort=60.0)
"""Programs that hang on purpose are found soon."""
PATIENT = HangLimits(silent=60.0)
"""No busy machine makes a program that goes on silent for so long."""
PROGRAM = """
import faulthandler, os, signal, subprocess, sys, threading, time
faulthandler.enable(file=2)
def report(text='{"serving":true}'):
    os.write(int(os.environ["PODSTATUS_HEALTH_FD"]), text.encode() + b"\\n")
def wait_for_a_lock_for_ever():
    threading.Event().wait()
def hold_the_interpreter():
    sum(range(10**15))
if "PODSTATUS_RESTARTED" in os.environ:
    open("restarted", "w").write(os.environ["PODSTATUS_RESTARTED"])
    sys.exit(0)
"""


class Scene:
    """A program that runs these lines once; the next one is content."""

    def __init__(
        self,
        folder: Path,
        lines: str,
        limits: HangLimits,
        variables: dict[str, str] | None = None,
        program: str = PROGRAM,
    ) -> None:
        """`variables`: those of systemd."""
        self.root = folder
        self.output = b""
        (folder / "logs").mkdir(parents=True)
        clock = SystemClock()
        self.supervisor = Supervisor(
            [sys.executable, "-c", f"import os; os.chdir({str(folder)!r}){program}{lines}"],
            folder,
            clock=clock,
            write_stderr=self.add_output,
            systemd=SystemdService.take(variables or {}, clock),
            backoff=Backoff(initial_seconds=0.01, max_seconds=0.01, jitter=0),
            limits=limits,
        )

    def add_output(self, text: bytes) -> None:
        self.output += text

    async def run(self) -> int:
        async with asyncio.timeout(120):
            return await self.supervisor.run()

    @property
    def record(self) -> dict[str, object]:
        (line,) = (self.root / "restarts.jsonl").read_text().splitlines()
        return dict(json.loads(line))

    @property
    def stacks(self) -> str:
        return (self.root / "logs/stacks.txt").read_text()


THREAD = "threading.Thread(target=wait_for_a_lock_for_ever).start()"
HANGS = {
    "blocked": ("report(); time.sleep(600)", '"<string>", line'),
    "spinning": ("report(); hold_the_interpreter()", "in hold_the_interpreter"),
    "threads": (f"{THREAD}; report(); time.sleep(600)", "in wait_for_a_lock_for_ever"),
    "stopped": ("report(); os.kill(os.getpid(), signal.SIGSTOP); time.sleep(600)", '", line'),
}
"""What a program does, and what its stacks show."""


async def test_an_agent_that_hangs_is_replaced_and_leaves_its_stacks(tmp_path: Path) -> None:
    scenes = {name: Scene(tmp_path / name, lines, QUICK) for name, (lines, _) in HANGS.items()}
    assert await asyncio.gather(*(scene.run() for scene in scenes.values())) == [0] * len(HANGS)
    for name, scene in scenes.items():
        assert scene.record["signal"] == "SIGABRT"
        assert str(scene.record["hung"]).startswith("its event loop was silent for ")
        assert "Fatal Python error: Aborted" in scene.stacks
        assert HANGS[name][1] in scene.stacks
        assert scene.stacks.encode() in scene.output
        assert (scene.root / "logs/stacks.txt").stat().st_mode & 0o777 == 0o600
        reason = (scene.root / "restarted").read_text()
        assert "the agent hung (its event loop was silent for " in reason


async def test_an_agent_that_handles_no_sigabrt_is_killed_and_the_watchdog_not_pinged(
    tmp_path: Path,
) -> None:
    ignore = "faulthandler.disable(); signal.signal(signal.SIGABRT, signal.SIG_IGN)"
    limits = HangLimits(silent=QUICK.silent, abort=1.5)
    with SystemdSocket(tmp_path / "notify") as systemd:

        class NotifyingScene(Scene):
            """The messages to systemd before and after the agent was found to hang."""

            before: Sequence[str] = ()
            after: Sequence[str] = ()

            def add_output(self, text: bytes) -> None:
                super().add_output(text)
                if b"ending it" in text:
                    self.before = systemd.receive_waiting()
                if b"restarting it" in text:
                    self.after = systemd.receive_waiting()

        lines = f"{ignore}; report(); time.sleep(600)"
        scene = NotifyingScene(tmp_path, lines, limits, systemd.variables(watchdog_seconds=0.1))
        assert await scene.run() == 0
    assert scene.record["signal"] == "SIGKILL"
    assert scene.record["hung"]
    assert not (tmp_path / "logs/stacks.txt").exists()
    assert "WATCHDOG=1" in scene.before
    assert list(scene.after) == []


async def test_an_agent_that_starts_for_long_without_a_report_is_not_replaced(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, f"time.sleep({QUICK.silent + 1.5}); sys.exit(0)", QUICK)
    assert await scene.run() == 0
    assert not (tmp_path / "restarts.jsonl").exists()


async def test_an_agent_with_a_stalled_service_is_replaced_and_the_reason_says_which(
    tmp_path: Path,
) -> None:
    stalled = 'report(\'{"serving":true,"stalled":["lease was last active 70 s ago"]}\')'
    limits = HangLimits(silent=PATIENT.silent, stalled=1.0, abort=60.0)
    scene = Scene(tmp_path, f"while True: {stalled}; time.sleep(0.2)", limits)
    assert await scene.run() == 0
    assert scene.record["hung"] == "lease was last active 70 s ago"


async def test_an_agent_with_a_stalled_service_is_replaced_only_once(tmp_path: Path) -> None:
    """The second agent has the same problem, and ends of itself."""
    stalled = 'report(\'{"serving":true,"stalled":["s"]}\')'
    lines = (
        "again = os.path.exists('again'); open('again', 'w')\n"
        f"for _ in range(20): {stalled}; time.sleep(0.2)\n"
        "sys.exit(0 if again else 3)"
    )
    limits = HangLimits(silent=PATIENT.silent, stalled=0.5, abort=60.0)
    scene = Scene(tmp_path, lines, limits, program=PROGRAM.partition("if ")[0])
    assert await scene.run() == 0
    assert scene.record["hung"] == "s"


async def test_a_process_that_holds_the_output_of_a_dead_agent_delays_no_restart(
    tmp_path: Path,
) -> None:
    holder = "child = subprocess.Popen(['sleep', '600'])"
    scene = Scene(tmp_path, f"{holder}; open('pid', 'w').write(str(child.pid)); sys.exit(3)", QUICK)
    try:
        assert await scene.run() == 0
        assert scene.record["exit_code"] == 3
    finally:
        psutil.Process(int((tmp_path / "pid").read_text())).kill()


async def test_an_agent_that_hangs_when_it_is_stopped_is_ended(tmp_path: Path) -> None:
    ignore = "signal.signal(signal.SIGTERM, lambda *_: None)"
    lines = f"{ignore}; report(); os.write(2, b'is up'); time.sleep(600)"
    scene = Scene(tmp_path, lines, QUICK)
    running = asyncio.create_task(scene.run())
    while b"is up" not in scene.output:
        await asyncio.wait({running}, timeout=0.05)
    scene.supervisor.stop(signal.SIGTERM)
    assert await running == 0
    assert b"ending it" in scene.output
    assert not (tmp_path / "restarted").exists()


def wait(seconds: float) -> None:
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() > end)


SUPERVISED = """
import asyncio, pathlib, sys
from podstatus.agent.daemon.decide.hang import HangLimits
from podstatus.agent.daemon.sd_notify import SystemdService
from podstatus.agent.daemon.supervisor import Supervisor
from podstatus.base.system_clock import SystemClock
agent = '''
import os, time
print(os.getpid(), flush=True)
while True:
    os.write(int(os.environ["PODSTATUS_HEALTH_FD"]), b'{"serving":true}\\\\n')
    time.sleep(0.1)
'''
async def run():
    clock = SystemClock()
    supervisor = Supervisor([sys.executable, "-c", agent], pathlib.Path(sys.argv[1]), clock=clock,
        write_stderr=sys.stderr.buffer.write, systemd=SystemdService.take({}, clock),
        limits=HangLimits(silent=4.0, gap=2.0))
    supervisor.forward_signals()
    return await supervisor.run()
sys.exit(asyncio.run(run()))
"""


@pytest.mark.slow
def test_a_supervisor_that_was_stopped_with_its_agent_does_not_replace_it(tmp_path: Path) -> None:
    words = [sys.executable, "-c", SUPERVISED, str(tmp_path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    agent = psutil.Process(int(process.stdout.readline()))
    try:
        # Stopped last and continued first, the supervisor has read all reports, and must wait.
        agent.send_signal(signal.SIGSTOP)
        wait(0.5)
        process.send_signal(signal.SIGSTOP)
        wait(5)
        process.send_signal(signal.SIGCONT)
        wait(1)
        agent.send_signal(signal.SIGCONT)
        wait(4)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        for left in (process, agent):
            with suppress(psutil.NoSuchProcess):
                left.kill()
        process.communicate()
    assert not (tmp_path / "restarts.jsonl").exists()
