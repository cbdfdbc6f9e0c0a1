"""Probes of real processes: by HTTP, TCP and commands, and over a restart of the agent."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.loopback_servers import closed_port
from tests.support.processes.agent_process import (
    Document,
    condition,
    container,
    is_ready,
    until,
)
from tests.support.processes.api_servers import NODES, Server
from tests.support.processes.mortal_node import MortalNode, pod_of, ready_node
from tests.support.processes.process_node import PYTHON

pytestmark = pytest.mark.slow

NODE = NODES[20]
PAGE = Path(__file__).parents[4] / "docs/reference/pod-lifecycle/probes.md"
HTTP_SERVER = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        good = os.path.exists(sys.argv[2])
        print("asked", self.path, self.headers["User-Agent"], flush=True)
        self.send_response(200 if good else 503)
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.HTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
"""
EVERY_SECOND = {"periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 1}
PATIENT = {**EVERY_SECOND, "failureThreshold": 60}
"""For a server that takes its time to begin, on a machine that has none."""


def web_pod(name: str, port: int, switch: Path, **probes: Any) -> Document:
    """A pod that answers 200 while the file is there, and 503 otherwise."""
    pod = pod_of(name, PYTHON, "-I", "-u", "-c", HTTP_SERVER, str(port), str(switch), node=NODE)
    pod["spec"]["containers"][0] |= probes
    return pod


def asked(node: MortalNode, pod: Document) -> int:
    """How often; by its log on the disk: the agent may not know the pod yet."""
    return node.attempt(pod).place.log.read_text().count("asked")


def wait_until_asked(node: MortalNode, pod: Document, times: int) -> None:
    already = asked(node, pod)
    until(lambda: asked(node, pod) >= already + times, node.log)


def test_http_readiness_is_shown_and_liveness_restarts(each_server: Server, tmp_path: Path) -> None:
    port, switch = closed_port(), tmp_path / "good"
    get = {"httpGet": {"path": "/healthz", "port": "web"}, **EVERY_SECOND}
    pod = web_pod(
        "web",
        port,
        switch,
        ports=[{"name": "web", "containerPort": port}],
        startupProbe={"tcpSocket": {"port": "web"}, **PATIENT},
        readinessProbe=get,
        livenessProbe={**get, "failureThreshold": 3},
    )
    with ready_node(each_server, tmp_path, "none", NODE) as (node, cluster):
        switch.touch()
        cluster.create(pod)
        [ready] = cluster.wait_ready("web")
        until(lambda: "asked /healthz kube-probe/1.36" in node.container_logs(ready))
        switch.unlink()
        cluster.wait_for("web", lambda pod: not is_ready(pod))
        text = "probe failed: HTTP probe failed with statuscode: 503"
        cluster.wait_for_event("Unhealthy", "web", f"Readiness {text}")
        cluster.wait_for_event("Unhealthy", "web", f"Liveness {text}")
        restarted = cluster.wait_for("web", lambda pod: container(pod)["restartCount"] == 1)
        assert container(restarted)["containerID"] != container(ready)["containerID"]
        switch.touch()
        cluster.wait_ready("web")
        cluster.wait_for_event("Killing", "web", "failed liveness probe, will be restarted")


def test_tcp_and_commands_say_who_has_started(each_server: Server, tmp_path: Path) -> None:
    port, switch = closed_port(), tmp_path / "good"
    is_there = {"exec": {"command": ["test", "-f", str(switch)]}}
    tcp = web_pod("tcp", port, switch, startupProbe={"tcpSocket": {"port": port}, **PATIENT})
    command = pod_of("command", "sleep", "1000", node=NODE)
    command["spec"]["containers"][0]["startupProbe"] = {**is_there, **PATIENT}
    with ready_node(each_server, tmp_path, "none", NODE) as (_, cluster):
        cluster.create(tcp, command)
        cluster.wait_ready("tcp")
        cluster.wait_for_event("Unhealthy", "command", "Startup probe failed: ")
        waiting = cluster.pod("command")
        assert waiting is not None
        assert container(waiting)["started"] is False
        switch.touch()
        cluster.wait_ready("command")


def test_a_restart_of_the_agent_is_not_seen_in_readiness(
    each_server: Server, tmp_path: Path
) -> None:
    port, switch = closed_port(), tmp_path / "good"
    get = {"httpGet": {"port": port}, **EVERY_SECOND}
    pod = web_pod("web", port, switch, startupProbe=get, readinessProbe=get, livenessProbe=get)
    pod["spec"]["containers"][0]["startupProbe"] = {**get, **PATIENT}
    switch.touch()
    with ready_node(each_server, tmp_path, "none", NODE) as (node, cluster):
        cluster.create(pod)
        [before] = cluster.wait_ready("web")
        for _ in range(3):
            node.kill()
            node.start()
            node.wait_ready(cluster)
            wait_until_asked(node, before, 4)
        after = cluster.pod("web")
        assert after is not None
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        for kind in ("Ready", "ContainersReady"):
            assert condition(after, kind) == condition(before, kind)
        assert container(after) == container(before)
        switch.unlink()
        cluster.wait_for("web", lambda pod: not is_ready(pod))


def test_the_example_of_the_page_becomes_ready(each_server: Server, tmp_path: Path) -> None:
    example = PAGE.read_text().split("```yaml\n")[1].split("```")[0]
    pod = yaml.safe_load(example.replace("8123", str(closed_port())))
    pod["spec"] |= {"nodeName": NODE, "terminationGracePeriodSeconds": 2}
    with ready_node(each_server, tmp_path, "none", NODE) as (_, cluster):
        cluster.create(pod)
        cluster.wait_ready(pod["metadata"]["name"])
