"""Play scenarios of the recorded tour, and ask the judge."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.api_servers import Server
from tests.tour.agents import TouringAgent

Document = dict[str, Any]
CONFORMANCE = Path(__file__).parents[1] / "conformance"


def records(pattern: str) -> list[Document]:
    """The scenarios whose name matches."""
    lines = (CONFORMANCE / "tour.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return [r for r in found if re.search(pattern, r["scenario"]["name"])]


def play(server: Server, agent: TouringAgent, tour: list[Document], *options: str) -> str:
    """What the judge says of a tour."""
    path = agent.folder / "tour.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in tour))
    access = server.access
    told = subprocess.run(
        [
            *(sys.executable, CONFORMANCE / "tour_check.py", "--server", access.url),
            *("--token", access.token, "--ca", access.authority, "--node", agent.node),
            *("--manifest-dir", agent.manifests, "--parallel", "50", path),
            *("--agent-restart-cmd", agent.restart_command(), *options),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=230,
    )
    return told.stdout + told.stderr


def name_of(record: Document) -> str:
    """Of the scenario."""
    return str(record["scenario"]["name"])
