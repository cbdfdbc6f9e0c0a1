"""`podstatus run` around a fake agent: fake_agent.py BEHAVIOUR OPTIONS…"""

import asyncio
import errno
import os
import sys
import time
from collections.abc import Callable
from functools import partial

from podstatus.agent.daemon import run_agent
from podstatus.agent.daemon.apiserver_process import EmbeddedApiServer, EmbeddedServerAccess
from podstatus.agent.daemon.decide.hang import HangLimits
from podstatus.agent.daemon.endpoints_file import RootDirError
from podstatus.agent.daemon.run_agent import AgentContext, ListenAddresses
from podstatus.agent.errors import AgentError
from podstatus.cli.register_commands import app
from podstatus.cli.start import run_node as run_command


class FakeAgent:
    def __init__(self, behaviour: str, context: AgentContext) -> None:
        self._behaviour = behaviour
        self._context = context

    async def run(self, on_serving: Callable[[ListenAddresses], None]) -> None:
        on_serving(ListenAddresses(agent="https://agent"))
        if self._behaviour == "environment":
            sys.stdout.write(f"environment: {' '.join(sorted(os.environ))}\n")
            sys.stdout.flush()
        sys.stderr.write(f"restarted: {self._context.restart_reason}\n")
        match self._behaviour:
            case "fail":
                raise AgentError("it failed; repair it")
            case "full":
                why = OSError(errno.ENOSPC, "No space left on device")
                raise RootDirError("cannot use it: no space left on device") from why
            case "break":
                raise ZeroDivisionError
            case "end":
                return
            case "break-once" if not self._context.restart_reason:
                raise ZeroDivisionError("once")
            case "block-once" if not self._context.restart_reason:
                block_the_event_loop()
        try:
            await asyncio.Event().wait()
        finally:
            if self._behaviour == "hang":
                sys.stdout.write("hanging\n")
                sys.stdout.flush()
                await asyncio.sleep(60)


def block_the_event_loop() -> None:
    time.sleep(600)


class DrainingAgent(FakeAgent):
    """Drains until it is done, or without end."""

    async def drain(self, report: Callable[[str], None]) -> tuple[str, ...]:
        report("draining")
        if self._behaviour == "drain":
            await asyncio.sleep(0.1)
            return ()
        if self._behaviour == "drain-late":
            return ("ns/p",)
        await asyncio.sleep(60)
        return ()


class SlowServer(EmbeddedApiServer):
    async def start(self) -> EmbeddedServerAccess:
        sys.stdout.write("starting\n")
        sys.stdout.flush()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


behaviour = sys.argv.pop(1)
if behaviour == "slow-server":
    run_agent.EmbeddedApiServer = SlowServer  # type: ignore[attr-defined]
program = (sys.executable, "-m", "tests.agent.daemon.fake_agent", behaviour)
run_command.PROGRAM = program  # type: ignore[attr-defined]
if behaviour == "block-once":
    run_command.HANG_LIMITS = HangLimits(silent=5.0)
kind = DrainingAgent if behaviour.startswith("drain") else FakeAgent
run_command.build_node_agent = partial(kind, behaviour)  # type: ignore[attr-defined, assignment]
if __name__ == "__main__":
    app()
