"""After an outage of the API server it has the correct statuses."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from podstatus.testing.apiserver import ApiServerProcess
from podstatus.testing.servers.access import ServerAccess
from tests.support.processes.agent_process import (
    Cluster,
    agent,
    container,
    has_phase,
    make_pod,
    until,
)
from tests.support.processes.api_servers import RealServer, Server

pytestmark = pytest.mark.slow

NODE = "node-k"
OUTAGE_SECONDS = 30.0
LONG_ENOUGH = "run=15s"
"""For all of them to be seen Ready before the first one ends."""
FAILS = f'{LONG_ENOUGH}, exit=3, message="all is lost"'
CRASHES = f"{LONG_ENOUGH}, exit=1; run=1s, exit=2; run=forever"
"""The first restart comes at once, the second after a back-off of ten seconds."""


class Pausable(msgspec.Struct, frozen=True):
    """A server that can be made to stand still."""

    access: ServerAccess
    agents: ServerAccess
    """As the agent has it."""
    namespace: str
    pause: Callable[[], None]
    resume: Callable[[], None]


@pytest.fixture
def server(each_server: Server, tmp_path: Path) -> Iterator[Pausable]:
    if isinstance(each_server, RealServer):
        real = each_server.process
        namespace = each_server.new_namespace()
        yield Pausable(real.access, real.node_access(NODE), namespace, real.pause, real.resume)
        each_server.forget_node(NODE)
        return
    process = ApiServerProcess(tmp_path / "server")
    access = process.start()
    yield Pausable(access, access, "default", process.pause, process.resume)
    process.stop()


@pytest.mark.slow
def test_changes_during_an_outage_are_reported_afterwards(server: Pausable, tmp_path: Path) -> None:
    with agent(tmp_path, kubeconfig=server.agents.kubeconfig, node=NODE) as started:
        started.start()
        cluster = Cluster(server.access, NODE, server.namespace)
        started.wait_ready(cluster)
        until(cluster.renewed)
        cluster.create(
            make_pod("crashes", CRASHES, NODE),
            make_pod("succeeds", LONG_ENOUGH, NODE, restartPolicy="Never"),
            make_pod("fails", FAILS, NODE, restartPolicy="Never"),
            make_pod("steady", "", NODE),
        )
        cluster.wait_ready("crashes", "succeeds", "fails", "steady")
        (before,) = cluster.wait_ready("steady")
        renewed = cluster.renewed()
        server.pause()
        try:
            time.sleep(OUTAGE_SECONDS)
        finally:
            server.resume()
        cluster.wait_for("succeeds", has_phase("Succeeded"))
        failed = container(cluster.wait_for("fails", has_phase("Failed")))["state"]["terminated"]
        assert (failed["exitCode"], failed["message"]) == (3, "all is lost")
        crashed = cluster.wait_for("crashes", lambda pod: container(pod)["restartCount"] == 2)
        assert container(crashed)["lastState"]["terminated"]["exitCode"] == 2
        until(lambda: cluster.renewed() > renewed, started.log)
        backed_off = cluster.wait_for_event("BackOff", "crashes")
        assert backed_off["message"].startswith("Back-off restarting failed container app in pod")
        until(lambda: cluster.wait_for_event("Started", "crashes")["count"] == 3)
        assert cluster.wait_ready("steady") == [before]
        cluster.create(make_pod("later", "", NODE))
        cluster.wait_ready("later")
        assert cluster.is_ready()
        assert "Traceback" not in started.log()
