"""An agent that is stopped on purpose tells why its Node will be silent."""

import signal
from pathlib import Path

import pytest

from podstatus.testing.apiserver import ApiServerProcess, running_api_server
from tests.support.processes.agent_process import (
    Cluster,
    agent,
    condition,
    make_pod,
    until,
)

STOPPED = "podstatus.dev/AgentStopped"
KEEP_RUNNING = (
    "The agent was stopped on request. Its containers keep running, and nothing is reported about "
    "them until it is started again."
)


def test_a_stopped_agent_leaves_a_condition_and_an_event_until_it_is_back(tmp_path: Path) -> None:
    with (
        running_api_server(tmp_path / "server") as server,
        agent(tmp_path / "agent", kubeconfig=server.kubeconfig) as started,
    ):
        cluster = Cluster(server, started.node)
        started.start()
        started.wait_ready(cluster)
        cluster.create(make_pod("steady", node=started.node))
        cluster.wait_ready("steady")
        ready = condition(cluster.node() or {}, "Ready")
        assert started.stop() == 0, started.log()
        node = cluster.node() or {}
        stopped = condition(node, STOPPED)
        assert (stopped["status"], stopped["reason"]) == ("True", "StopRequested")
        assert stopped["message"] == KEEP_RUNNING
        now_ready = condition(node, "Ready")
        assert now_ready["status"] == "True"
        assert now_ready["lastTransitionTime"] == ready["lastTransitionTime"]
        event = cluster.wait_for_event("AgentStopped", started.node, KEEP_RUNNING)
        assert event["type"] == "Normal"
        started.start()
        until(lambda: not condition(cluster.node() or {}, STOPPED), started.log)
        assert condition(cluster.node() or {}, "Ready")["status"] == "True"


@pytest.mark.slow
def test_a_server_that_does_not_answer_delays_no_stop(tmp_path: Path) -> None:
    server = ApiServerProcess(tmp_path / "server")
    access = server.start()
    try:
        with agent(tmp_path / "agent", kubeconfig=access.kubeconfig) as started:
            started.start()
            started.wait_ready(Cluster(access, started.node))
            server.pause()
            assert started.stop() == 0, started.log()
            assert (
                "cannot report the stop of the agent"
                in (started.root_dir / "logs/podstatus.log").read_text()
            )
    finally:
        server.stop()


@pytest.mark.slow
def test_a_drained_agent_says_that_nothing_runs_and_a_killed_one_says_nothing(
    tmp_path: Path,
) -> None:
    with (
        running_api_server(tmp_path / "server") as server,
        agent(tmp_path / "agent", "--on-stop", "drain", kubeconfig=server.kubeconfig) as started,
    ):
        cluster = Cluster(server, started.node)
        started.start()
        started.wait_ready(cluster)
        started.kill()
        assert not condition(cluster.node() or {}, STOPPED)
        started.start()
        started.wait_serving()
        started.wait_ready(cluster)
        cluster.create(make_pod("ends", node=started.node))
        cluster.wait_ready("ends")
        assert started.stop(signal.SIGINT) == 0, started.log()
        stopped = condition(cluster.node() or {}, STOPPED)
        assert stopped["message"] == "The agent was stopped on request. No containers are running."
        assert condition(cluster.node() or {}, "Ready")["status"] == "False"


@pytest.mark.slow
def test_an_agent_that_ends_with_its_server_tells_nobody(tmp_path: Path) -> None:
    with agent(tmp_path, "--no-samples") as started:
        started.start_ready()
        assert started.stop() == 0
        started.start_ready()
        assert not [it for it in started.cluster.events() if it["reason"] == "AgentStopped"]
