"""An agent that has an API server as a child, and waits to be killed."""

import asyncio
import sys
from pathlib import Path

from podstatus.agent.daemon.apiserver_process import EmbeddedApiServer, NodeTrust
from podstatus.base.system_clock import SystemClock


async def main(folder: Path) -> None:
    trust = NodeTrust(authority=folder / "agent.crt", address="127.0.0.1")
    async with EmbeddedApiServer(
        folder, folder / "log", port=0, clock=SystemClock(), node_trust=trust
    ) as server:
        await server.start()
        sys.stdout.write(f"{server.pid}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


asyncio.run(main(Path(sys.argv[1])))
