"""After an outage of the API server it has the correct statuses."""

import time
from pathlib import Path

import pytest

from tests.support.processes.agent_process import (
    Cluster,
    agent,
    container,
    has_phase,
    make_pod,
    until,
)
from tests.support.processes.api_servers import NODES, Server
from tests.support.processes.mortal_server import mortal

pytestmark = pytest.mark.slow

NODE = NODES[10]
OUTAGE_SECONDS = 30.0
LONG_ENOUGH = "run=15s"
"""For all of them to be seen Ready before the first one ends."""
FAILS = f'{LONG_ENOUGH}, exit=3, message="all is lost"'
CRASHES = f"{LONG_ENOUGH}, exit=1; run=1s, exit=2; run=forever"
"""The first restart comes at once, the second after a back-off of ten seconds."""


def test_changes_during_an_outage_are_reported_afterwards(
    each_server: Server, tmp_path: Path
) -> None:
    with (
        mortal(each_server, tmp_path / "server") as server,
        agent(tmp_path, kubeconfig=server.node_access(NODE).kubeconfig, node=NODE) as started,
    ):
        started.start()
        cluster = Cluster(server.access, NODE)
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
