"""The recorded tour of the Go kubelet as it is, on real processes and on both API servers.

Left out is what needs probes, hooks or images.
"""

from collections.abc import Iterator

import pytest

from tests.api_servers import RealServer, Server
from tests.runtime.process.machine import need_bubblewrap
from tests.tour.agents import TouringAgent, running_agent
from tests.tour.judge import Document, name_of, play, records

NODE = "node-p"
PROCESSES = ("--runtime", "process", "--isolation", "bubblewrap", "--register-with-taints", "")
NOT_YET = ("startupProbe", "readinessProbe", "livenessProbe", "lifecycle")

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow, need_bubblewrap]


@pytest.fixture(scope="module")
def agent(each_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TouringAgent]:
    access = each_server.access
    if isinstance(each_server, RealServer):
        access = each_server.process.node_access(NODE)
    folder = tmp_path_factory.mktemp("tour")
    with running_agent(folder, access.kubeconfig, NODE, each_server.access, *PROCESSES) as agent:
        yield agent


def needs_no_probe_or_hook(record: Document) -> bool:
    scenario = record["scenario"]
    manifests = [action["do"].get("content") for action in scenario["actions"] if "do" in action]
    specs = [pod["spec"] for pod in (*scenario.get("pods", []), *manifests) if pod]
    containers = [c for s in specs for c in (*s.get("initContainers", []), *s["containers"])]
    return not any(name in container for container in containers for name in NOT_YET)


def test_processes_live_as_the_kubelet_s_containers_do(
    each_server: Server, agent: TouringAgent
) -> None:
    tour = [record for record in records("") if needs_no_probe_or_hook(record)]
    assert len(tour) == 46
    # Not all at once: a pod that has 4 s to live must not wait for so many shims.
    told = play(each_server, agent, tour, "--without", "images", "--parallel", "12")
    assert ", 0 differ, 1 skipped" in told, told + agent.log()[-4000:]
    assert "skipped image-missing-never-pull: needs images" in told
    assert name_of(tour[0]) == "run-single"
