"""`podstatus run --runtime cri`: pods of the embedded API server run on a real containerd."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.agent_process import AgentProcess, until
from tests.support.processes.containerd import BUSYBOX, Containerd

pytestmark = pytest.mark.containerd

Document = dict[str, Any]


@pytest.fixture
def agent(containerd: Containerd, tmp_path: Path) -> Iterator[AgentProcess]:
    agent = AgentProcess(
        tmp_path / "agent",
        *("--runtime", "cri", "--container-runtime-endpoint", containerd.endpoint),
        "--no-samples",
    )
    yield agent
    agent.kill()


def a_pod(name: str, script: str, **fields: Any) -> Document:
    container = {"name": "app", "image": BUSYBOX, "command": ["/bin/sh", "-c", script], **fields}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 2, "nodeName": "node-e"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": spec | {"automountServiceAccountToken": False},
    }


def state(pod: Document) -> Document:
    (status,) = pod["status"].get("containerStatuses") or [{}]
    found: Document = status.get("state", {})
    return found


def test_the_life_of_a_pod(agent: AgentProcess, containerd: Containerd) -> None:
    cluster = agent.start_ready()
    node = cluster.node()
    assert node is not None
    assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://1.")
    serve = "mkdir /tmp/w; echo hello > /tmp/w/index.html; exec httpd -f -p 8080 -h /tmp/w"
    probe = {"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 1}
    cluster.create(a_pod("web", serve, readinessProbe=probe))
    (pod,) = cluster.wait_ready("web")
    status = pod["status"]
    assert status["podIP"].startswith("10.213.")
    assert status["containerStatuses"][0]["containerID"].startswith("containerd://")
    assert status["containerStatuses"][0]["image"] == BUSYBOX
    with urllib.request.urlopen(f"http://{status['podIP']}:8080/", timeout=20) as page:
        assert page.read() == b"hello\n"
    cluster.delete("web")
    cluster.wait_gone("web")
    until(lambda: containerd.tasks() == [], containerd.tasks)


def test_a_container_that_fails_is_restarted(agent: AgentProcess) -> None:
    cluster = agent.start_ready()
    cluster.create(a_pod("crash", "echo oh; exit 3"))

    def is_in_backoff(pod: Document) -> bool:
        return bool(state(pod).get("waiting", {}).get("reason") == "CrashLoopBackOff")

    pod = cluster.wait_for("crash", is_in_backoff)
    (status,) = pod["status"]["containerStatuses"]
    last = status["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (3, "Error")
    assert status["restartCount"] >= 1


def test_an_image_that_cannot_be_pulled_says_why(agent: AgentProcess) -> None:
    cluster = agent.start_ready()
    cluster.create(a_pod("none", "id", image="localhost:1/none:1"))

    def is_in_backoff(pod: Document) -> bool:
        return bool(state(pod).get("waiting", {}).get("reason") == "ImagePullBackOff")

    waiting = state(cluster.wait_for("none", is_in_backoff))["waiting"]
    assert waiting["message"].startswith(
        'Back-off pulling image "localhost:1/none:1": ErrImagePull'
    )


def test_pods_outlive_the_agent(agent: AgentProcess) -> None:
    cluster = agent.start_ready()
    cluster.create(a_pod("stays", "sleep 600"), a_pod("ends", "sleep 3; exit 4"))
    # A start that is cut off by the end of the agent is another matter: StartError.
    cluster.wait_for("ends", lambda pod: "running" in state(pod))
    before = cluster.wait_ready("stays")[0]["status"]["containerStatuses"][0]
    agent.kill()
    agent.start()
    agent.wait_serving()
    cluster = agent.cluster

    def restarted(pod: Document) -> Document | None:
        (status,) = pod["status"]["containerStatuses"]
        found: Document | None = status.get("lastState", {}).get("terminated")
        return found

    ended = restarted(cluster.wait_for("ends", restarted))
    assert ended is not None
    assert ended["exitCode"] == 4
    after = cluster.wait_ready("stays")[0]["status"]["containerStatuses"][0]
    assert (after["containerID"], after["restartCount"]) == (before["containerID"], 0)
    assert json.dumps(after["state"]) == json.dumps(before["state"])


def test_without_a_container_runtime_it_says_what_to_do(tmp_path: Path) -> None:
    endpoint = f"unix://{tmp_path}/none.sock"
    agent = AgentProcess(
        tmp_path / "agent", "--runtime", "cri", "--container-runtime-endpoint", endpoint
    )
    agent.start()
    assert agent.wait() != 0
    assert f"cannot reach the container runtime at {endpoint}" in agent.log()
