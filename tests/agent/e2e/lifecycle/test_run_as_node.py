"""`podstatus run` as the user of its node: what the Node authorizer and NodeRestriction allow."""

import json
from pathlib import Path

import pytest

from tests.support.processes.agent_process import (
    AgentProcess,
    agent_on,
    container,
    has_phase,
    make_pod,
    until,
)
from tests.support.processes.api_servers import NODES, RealServer

pytestmark = pytest.mark.slow

NODE = NODES[11]
JUST_BOUND = "no relationship found between node"
"""The authorizer hears of a pod by a watch of its own, so it may be late (SURPRISES, tour 18)."""


def refusals(started: AgentProcess) -> list[str]:
    """What the server did not allow, and not just for the moment."""
    lines = started.log().splitlines()
    return [line for line in lines if "forbidden" in line.lower() and JUST_BOUND not in line]


def test_all_of_it_is_allowed_to_the_user_of_the_node(
    real_server: RealServer, tmp_path: Path
) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    options = ("--pod-manifest-path", str(manifests), "--file-check-frequency", "200ms")
    labels = ("--node-labels", "topology.kubernetes.io/zone=z,example.com/rack=3")
    taints = ("--register-with-taints", "team=blue:NoSchedule")
    with agent_on(real_server, tmp_path, NODE, *options, *labels, *taints) as (started, cluster):
        static = make_pod("static")
        static["metadata"]["namespace"] = cluster.namespace
        (manifests / "static.json").write_text(json.dumps(static))
        cluster.create(
            make_pod("runs", "", NODE),
            make_pod("ends", "run=1s, exit=3", NODE, restartPolicy="Never"),
            make_pod("rejected", "", NODE, nodeSelector={"disk": "ssd"}),
        )
        cluster.wait_ready("runs", f"static-{NODE}")
        assert container(cluster.wait_for("ends", has_phase("Failed")))["state"]["terminated"]
        cluster.wait_for("rejected", has_phase("Failed"))
        for reason, name in (("Started", "runs"), ("NodeAffinity", "rejected"), ("Starting", NODE)):
            cluster.wait_for_event(reason, name)
        first = until(cluster.renewed)
        for name in ("runs", "ends"):
            cluster.delete(name)
        (manifests / "static.json").unlink()
        for name in ("runs", "ends", f"static-{NODE}"):
            cluster.wait_gone(name)
        node = cluster.node()
        assert node is not None
        assert node["metadata"]["labels"]["example.com/rack"] == "3"
        assert {"key": "team", "value": "blue", "effect": "NoSchedule"} in node["spec"]["taints"]
        # A node that was there before is taken over, too.
        assert started.stop() == 0
        started.start()
        until(lambda: cluster.renewed() > first, started.log)
        started.wait_ready(cluster)
        cluster.create(make_pod("later", "", NODE))
        cluster.wait_ready("later")
        assert refusals(started) == []
