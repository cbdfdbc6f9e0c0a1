"""The agent as it ships, on a runtime that writes down when a container became ready or not."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from podstatus.agent.compose.agent import NodeAgent
from podstatus.agent.daemon.logging_setup import configure_logging
from podstatus.agent.daemon.run import AgentContext, AgentInfo, run_agent
from podstatus.agent.settings.load import load_settings
from podstatus.base.aio import SystemClock
from podstatus.runtime.port import ProbeResult
from podstatus.runtime.simulated.adapter import SimulatedRuntime


class TellingRuntime(SimulatedRuntime):
    """Writes a line for each change: when, which pod, ready or not."""

    def __init__(self, folder: Path, changes: Path) -> None:
        super().__init__(SystemClock(), folder=folder)
        self._changes = changes.open("w", buffering=1)

    async def probe_results(self) -> AsyncIterator[ProbeResult]:
        """The results, written down as they come."""
        async for result in super().probe_results():
            self._changes.write(f"{time.time_ns()} {result.uid} {int(result.success)}\n")
            yield result


def _tell(running: AgentInfo) -> None:
    print(running.apiserver, flush=True)


def main(root: str) -> None:
    """Run in this folder; the only line of output says that it serves."""
    flags = {"root_dir": root, "port": "0", "samples": "false", "max_pods": "600"}
    flags |= {"hostname_override": "node-a", "node_capacity": "cpu=100,memory=500Gi"}
    settings = load_settings(flags, dict(os.environ)).settings
    configure_logging(0, "text")
    changes = Path(root, "changes")

    def build(surroundings: AgentContext) -> NodeAgent:
        return NodeAgent(surroundings, TellingRuntime(surroundings.root.folder("runtime"), changes))

    asyncio.run(run_agent(settings, build, _tell))


if __name__ == "__main__":
    main(sys.argv[1])
