"""The recorded tour of the Go kubelet, on the simulated runtime and on both API servers."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api_servers import RealServer, Server
from tests.tour.agents import TouringAgent, running_agent
from tests.tour.scripts import SCRIPTS, simulated

CONFORMANCE = Path(__file__).parents[1] / "conformance"
NODE = "node-h"

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def agent(each_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TouringAgent]:
    access = each_server.access
    if isinstance(each_server, RealServer):
        access = each_server.process.node_access(NODE)
    folder = tmp_path_factory.mktemp("tour")
    with running_agent(folder, access.kubeconfig, NODE, each_server.access) as agent:
        yield agent


def records(pattern: str) -> list[dict[str, object]]:
    lines = (CONFORMANCE / "tour.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return [r for r in found if re.search(pattern, r["scenario"]["name"])]


def play(server: Server, agent: TouringAgent, tour: list[dict[str, object]]) -> str:
    """What the judge says of a tour."""
    path = agent.folder / "tour.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in tour))
    access = server.access
    told = subprocess.run(
        [
            *(sys.executable, CONFORMANCE / "tour_check.py", "--server", access.url),
            *("--token", access.token, "--ca", access.authority, "--node", NODE),
            *("--manifest-dir", agent.manifests, "--parallel", "50", path),
            *("--agent-restart-cmd", agent.restart_command()),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=230,
    )
    return told.stdout + told.stderr


def test_rejected_pods_look_as_the_kubelet_shows_them(
    each_server: Server, agent: TouringAgent
) -> None:
    rejections = records("^reject-")
    assert len(rejections) == 2
    told = play(each_server, agent, rejections)
    assert "2 of 2 agree" in told, told


def test_simulated_pods_live_as_the_kubelet_s_do(each_server: Server, agent: TouringAgent) -> None:
    tour = [simulated(r) for r in records("") if _name(r) in SCRIPTS]
    assert len(tour) == len(SCRIPTS)
    told = play(each_server, agent, tour)
    assert ", 0 differ, 0 skipped" in told, told + agent.log()[-4000:]


def _name(record: dict[str, object]) -> str:
    scenario = record["scenario"]
    assert isinstance(scenario, dict)
    return str(scenario["name"])
