"""The recorded tour of the Go kubelet, on the simulated runtime and on both API servers."""

from collections.abc import Iterator

import pytest

from tests.support.processes.api_servers import NODES, Server
from tests.tour.agents import TouringAgent, running_agent
from tests.tour.judge import name_of, play, records
from tests.tour.scripts import SCRIPTS, simulated

NODE = NODES[7]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def agent(each_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TouringAgent]:
    access = each_server.node_access(NODE)
    folder = tmp_path_factory.mktemp("tour")
    with running_agent(folder, access.kubeconfig, NODE, each_server.access) as agent:
        yield agent
    each_server.forget_node(NODE)


def test_rejected_pods_look_as_the_kubelet_shows_them(
    each_server: Server, agent: TouringAgent
) -> None:
    rejections = records("^reject-")
    assert len(rejections) == 2
    differ, told = play(each_server, agent, rejections)
    assert differ == [], told


def test_simulated_pods_live_as_the_kubelet_s_do(each_server: Server, agent: TouringAgent) -> None:
    tour = [simulated(r) for r in records("") if name_of(r) in SCRIPTS]
    assert len(tour) == len(SCRIPTS)
    differ, told = play(each_server, agent, tour)
    assert differ == [], told + agent.log()[-4000:]
    assert told.endswith(" differ, 0 skipped\n")
