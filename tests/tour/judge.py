"""Play scenarios of the recorded tour, and ask the judge."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.processes.api_servers import Server
from tests.tour.agents import TouringAgent

Document = dict[str, Any]
AGAIN = 2
"""Plays of what differs."""
AT_ONCE = 8
"""Scenarios. More, and on a busy machine a container of two seconds has ended before it was told
that it runs."""
CONFORMANCE = Path(__file__).parents[1] / "conformance"


def records(pattern: str) -> list[Document]:
    """The scenarios whose name matches."""
    lines = (CONFORMANCE / "tour.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return [r for r in found if re.search(pattern, r["scenario"]["name"])]


def play(
    server: Server, agent: TouringAgent, tour: list[Document], *options: str
) -> tuple[list[str], str]:
    """The names of the scenarios that differ, and what the judge says of the whole tour.

    What the agent would have told is lost if something newer comes before it could, and a busy
    machine gives it no time: what differs is played again, two at a time.
    """
    told = _judge(server, agent, tour, *options)
    differ = _differ(told)
    for _ in range(AGAIN):
        if differ:
            left = [record for record in tour if name_of(record) in differ]
            differ = _differ(_judge(server, agent, left, *options, "--parallel", "2"))
    return differ, told


def _differ(told: str) -> list[str]:
    summary = re.search(r", (\d+) differ, \d+ skipped$", told, re.MULTILINE)
    assert summary is not None, told
    names = re.findall(r"^DIFFERS (\S+)", told, re.MULTILINE)
    assert len(names) == int(summary[1]), told
    return names


def _judge(server: Server, agent: TouringAgent, tour: list[Document], *options: str) -> str:
    path = agent.folder / "tour.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in tour))
    access = server.access
    told = subprocess.run(
        [
            *(sys.executable, CONFORMANCE / "tour_check.py", "--server", access.url),
            # As one word: it may begin with a hyphen.
            *(f"--token={access.token}", "--ca", access.authority, "--node", agent.node),
            *("--manifest-dir", agent.manifests, "--parallel", str(AT_ONCE), path),
            *("--agent-restart-cmd", agent.restart_command(), *options),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=560,
    )
    return told.stdout + told.stderr


def name_of(record: Document) -> str:
    """Of the scenario."""
    return str(record["scenario"]["name"])
