"""Five minutes of deploys, crash loops, flips, deletions and upgrades of the agent: `make day`.

No Ready flaps, and no change is lost: all that the script does is seen, and nothing else.
"""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.agent.e2e.lifecycle.day import NEXT_VERSION, Day, Diary, Targets, followed, lines
from tests.support.processes.agent_process import Cluster, Document, container, has_phase, until
from tests.support.processes.api_servers import NODES, Server
from tests.support.processes.process_runtime import need_bubblewrap
from tests.tour.agents import TouringAgent, running_agent

pytestmark = [pytest.mark.timeout(600), pytest.mark.long, need_bubblewrap]

NODE = NODES[17]
NAMESPACE = "day"
PROCESSES = ("--runtime", "process", "--isolation", "bubblewrap", "--register-with-taints", "")
WEB = tuple(f"web-{number}" for number in range(6))
NEW = tuple(f"new-{number}" for number in range(6))


@pytest.fixture
def targets() -> Iterator[Targets]:
    targets = Targets()
    targets.start()
    yield targets
    targets.stop()


@pytest.fixture
def agent(each_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TouringAgent]:
    access = each_server.node_access(NODE)
    folder = tmp_path_factory.mktemp("day")
    with running_agent(folder, access.kubeconfig, NODE, each_server.access, *PROCESSES) as agent:
        yield agent


def live(day: Day) -> None:
    """The script. A flip lasts for 4 s, while a probe asks each second."""
    at = day.at
    at(0, day.deploy, *WEB)
    at(8, day.deploy_slow, "slow")
    at(10, day.crash_loop, "looper")
    at(12, day.run_job, "report", 0)
    at(12, day.run_job, "broken", 7)
    at(25, day.fall_ill, "web-0")
    at(29, day.get_well, "web-0")
    at(35, day.fall_ill, "web-1")
    at(37, day.fall_ill, "web-2")
    at(41, day.get_well, "web-1")
    at(43, day.get_well, "web-2")
    for number, (old, new) in enumerate(zip(WEB[:3], NEW[:3], strict=True)):
        at(50 + 8 * number, day.replace, old, new)
    at(80, day.stop_agent)
    at(83, day.start_newer)
    at(95, day.fall_ill, "new-0")
    at(99, day.get_well, "new-0")
    at(105, day.delete, "report", "broken")
    at(115, day.run_job, "report", 0)
    # Unhealthy while no agent runs, and still unhealthy afterwards.
    at(128, day.stop_agent)
    at(129, day.fall_ill, "new-1")
    at(131, day.start_agent)
    at(141, day.get_well, "new-1")
    for number, (old, new) in enumerate(zip(WEB[3:], NEW[3:], strict=True)):
        at(150 + 8 * number, day.replace, old, new)
    at(180, day.fall_ill, "new-4")
    at(184, day.get_well, "new-4")
    # An agent that is killed and not stopped.
    at(195, day.agent.kill)
    at(197, day.start_agent)
    at(210, day.fall_ill, "slow")
    at(218, day.get_well, "slow")
    at(225, day.delete, "new-2")
    at(226, day.run_job, "late", 5)
    at(240, day.stop_agent)
    at(240, day.delete, "new-3")
    at(243, day.start_agent)
    at(255, day.fall_ill, "new-5")
    at(259, day.get_well, "new-5")
    at(275, day.delete, "looper")
    at(290, day.delete, "new-0", "new-1", "new-4", "new-5", "slow")


ILL = ("web-0", "web-1", "web-2", "new-0", "new-1", "new-4", "new-5", "slow")
"""Those that are ill once."""


def test_day_without_a_flap_or_a_lost_change(
    each_server: Server, agent: TouringAgent, targets: Targets
) -> None:
    code, answer = each_server.client.create(
        "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}, "kind": "Namespace"}
    )
    assert code == 201, answer
    cluster = Cluster(each_server.access, NODE, NAMESPACE)
    with followed(each_server, NAMESPACE) as diary:
        live(Day(cluster, agent, targets))
        for name in (*WEB, *NEW, "slow", "looper"):
            cluster.wait_gone(name)
        late = cluster.wait_for("late", has_phase("Failed"))
        until(lambda: late["metadata"]["uid"] in diary.pages)
    check(diary, cluster)


def check(diary: Diary, cluster: Cluster) -> None:
    for name in (*WEB, *NEW, "slow"):
        (page,) = diary.of(name)
        # It becomes ready, is not while it is ill, and not any more when it has ended.
        expected = [False, True, *[False, True] * (name in ILL), False]
        assert diary.ready(page) == expected, lines(diary)
        assert not diary.hidden_flaps(page), lines(diary)
        assert max(restarts(page)) == 0, lines(diary)
    check_looper(diary)
    for name, codes in {"report": [0, 0], "broken": [7], "late": [5]}.items():
        assert [end_code(page) for page in diary.of(name)] == codes, lines(diary)
        for page in diary.of(name):
            assert phases(page) == ["Pending", "Running", phases(page)[-1]], lines(diary)
    node = cluster.node()
    assert node is not None
    assert NEXT_VERSION in node["status"]["nodeInfo"]["kubeletVersion"]


def check_looper(diary: Diary) -> None:
    """Each of its ends was seen, once, with its code."""
    (page,) = diary.of("looper")
    counts = restarts(page)
    assert counts[-1] >= 4, lines(diary)
    assert all(after - before in (0, 1) for before, after in pairwise(counts)), counts
    for pod in page:
        for status in pod["status"].get("containerStatuses", []):
            last = status["lastState"].get("terminated")
            assert (last is None) == (status["restartCount"] == 0), status
            assert last is None or (last["exitCode"], last["reason"]) == (3, "Error"), status


def restarts(page: list[Document]) -> list[int]:
    return [s["restartCount"] for pod in page for s in pod["status"].get("containerStatuses", [])]


def phases(page: list[Document]) -> list[str]:
    seen: list[str] = []
    for pod in page:
        if not seen or pod["status"]["phase"] != seen[-1]:
            seen.append(pod["status"]["phase"])
    return seen


def end_code(page: list[Document]) -> int:
    return int(container(page[-1])["state"]["terminated"]["exitCode"])
