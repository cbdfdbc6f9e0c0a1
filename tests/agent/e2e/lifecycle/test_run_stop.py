"""`podstatus run` stops soon and leaves nothing behind."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from podstatus.apiserver.state_dir import lock_holder
from podstatus.testing.apiserver import ApiServerProcess
from tests.support.processes.agent_process import AgentProcess, Cluster, agent, make_pod

pytestmark = pytest.mark.slow

CHANGING = "ready=+300ms-300ms*"
PROBED = [{"name": "app", "image": "busybox", "readinessProbe": {"exec": {"command": ["true"]}}}]
NUMBERS = (signal.SIGINT, signal.SIGTERM)


def check_end(*agents: AgentProcess) -> None:
    """They have to end in time and in peace, with all that they started.

    An agent gives itself less than five seconds; then it ends by force, and not with 0.
    """
    for started, number in zip(agents, NUMBERS, strict=True):
        family = started.family()
        assert started.stop(number) == 0, started.log()
        assert not [process for process in family if process.is_running()]
        assert started.endpoints() == {}
        assert lock_holder(started.root_dir) is None
        assert lock_holder(started.root_dir / "apiserver") is None
        assert "Traceback" not in started.log()


@contextmanager
def two_agents(folder: Path, *options: str, **more: Any) -> Iterator[list[AgentProcess]]:
    """Started at the same time, which saves some."""
    nodes = ("node-c", "node-d")
    with (
        agent(folder / "1", *options, node=nodes[0], **more) as first,
        agent(folder / "2", *options, node=nodes[1], **more) as second,
    ):
        first.start()
        second.start()
        yield [first, second]


def test_an_agent_at_rest_ends(tmp_path: Path) -> None:
    with two_agents(tmp_path) as agents:
        for started in agents:
            started.wait_serving()
            started.cluster.wait_ready("web", "worker")
        check_end(*agents)
        assert all("stopped; the containers keep running" in started.log() for started in agents)


def test_one_that_starts_fifty_pods_ends(tmp_path: Path) -> None:
    with two_agents(tmp_path) as agents:
        for started in agents:
            started.wait_serving()
            started.wait_ready(started.cluster)
            for index in range(50):
                started.cluster.create(make_pod(f"pod-{index}", "start=5s", started.node))
        check_end(*agents)


def test_one_whose_own_server_stands_still_ends(tmp_path: Path) -> None:
    with two_agents(tmp_path) as agents:
        for started in agents:
            started.wait_serving()
            # Statuses and events wait for an answer.
            started.cluster.create(make_pod("changing", CHANGING, containers=PROBED))
            started.cluster.wait_ready("changing")
            started.server().suspend()
        check_end(*agents)


def test_one_whose_cluster_does_not_answer_ends(tmp_path: Path) -> None:
    server = ApiServerProcess(tmp_path / "server")
    access = server.start()
    try:
        with two_agents(tmp_path, kubeconfig=access.kubeconfig) as agents:
            for started in agents:
                cluster = Cluster(access, started.node)
                started.wait_ready(cluster)
                cluster.create(make_pod(started.node, CHANGING, started.node, containers=PROBED))
                cluster.wait_ready(started.node)
            server.pause()
            check_end(*agents)
    finally:
        server.stop()


def test_one_that_never_reached_its_cluster_ends(tmp_path: Path) -> None:
    server = ApiServerProcess(tmp_path / "server")
    access = server.start()
    server.pause()
    try:
        with two_agents(tmp_path, kubeconfig=access.kubeconfig) as agents:
            for started in agents:
                started.wait_serving()
            check_end(*agents)
            assert all("stopped; no containers are running\n" in it.log() for it in agents)
    finally:
        server.stop()
