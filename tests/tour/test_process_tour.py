"""The recorded tour of the Go kubelet as it is, on real processes and on both API servers.

Left out is the one scenario that needs images. After a restart the kubelet's rule decides what a
young container is until its probe speaks: recorded is that it is not ready for a moment. Ours
keeps it ready, unless told otherwise: `test_process_probes.py`.
"""

from collections.abc import Iterator

import pytest

from tests.support.processes.api_servers import NODES, Server
from tests.support.processes.process_runtime import need_bubblewrap
from tests.tour.agents import TouringAgent, running_agent
from tests.tour.judge import name_of, play, records

NODE = NODES[15]
OPTIONS = (
    *("--runtime", "process", "--isolation", "bubblewrap", "--register-with-taints", ""),
    *("--ready-after-restart", "kubelet"),
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), need_bubblewrap]


@pytest.fixture(scope="module")
def agent(each_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TouringAgent]:
    access = each_server.node_access(NODE)
    folder = tmp_path_factory.mktemp("tour")
    with running_agent(folder, access.kubeconfig, NODE, each_server.access, *OPTIONS) as agent:
        yield agent
    each_server.forget_node(NODE)


def test_processes_live_as_the_kubelet_s_containers_do(
    each_server: Server, agent: TouringAgent
) -> None:
    tour = records("")
    assert len(tour) == 57
    # Fewer at once: a pod that has 4 s to live must not wait for so many shims.
    differ, told = play(each_server, agent, tour, "--without", "images", "--parallel", "5")
    assert differ == [], told + agent.log()[-4000:]
    assert "skipped image-missing-never-pull: needs images" in told
    assert name_of(tour[0]) == "run-single"
