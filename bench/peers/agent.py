"""The released agent on a runtime that logs the time of every readiness change."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from podstatus.agent.compose.agent import NodeAgent
from podstatus.agent.daemon.logging_setup import configure_logging
from podstatus.agent.daemon.run_agent import AgentContext, AgentInfo, run_agent
from podstatus.agent.settings.load import load_settings
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.base.system_clock import SystemClock
from podstatus.runtime.port import ProbeResult
from podstatus.runtime.simulated.simulated_runtime import SimulatedRuntime


class LoggingRuntime(SimulatedRuntime):
    """Writes a line for each change: the time in ns, the pod's UID, ready or not."""

    def __init__(self, folder: Path, changes: Path) -> None:
        super().__init__(SystemClock(), folder=folder)
        self._changes = changes.open("w", buffering=1)

    async def probe_results(self) -> AsyncIterator[ProbeResult]:
        """Yield the results, and log each of them."""
        async for result in super().probe_results():
            self._changes.write(f"{time.time_ns()} {result.uid} {int(result.success)}\n")
            yield result


def _print_url(running: AgentInfo) -> None:
    print(running.apiserver, flush=True)


def main(root: str) -> None:
    """Run the agent in this directory; the only line of output is printed when it serves."""
    flags = {"root_dir": root, "port": "0", "samples": "false", "max_pods": "600"}
    flags |= {"hostname_override": "node-a", "node_capacity": "cpu=100,memory=500Gi"}
    settings = load_settings(flags, dict(os.environ)).settings
    configure_logging(0, "text")
    changes = Path(root, "changes")

    def build(context: AgentContext) -> NodeAgent:
        clock = SystemClock()
        return NodeAgent(
            context, clock, Heartbeats(clock), lambda it: LoggingRuntime(it.folder, changes)
        )

    asyncio.run(run_agent(settings, build, _print_url))


if __name__ == "__main__":
    main(sys.argv[1])
