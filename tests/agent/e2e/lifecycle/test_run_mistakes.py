"""Errors of a pod, a manifest or the start are reported where a Kubernetes user looks."""

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from podstatus.apiserver.state_dir import lock_holder
from podstatus.testing.apiserver import ApiServerProcess
from tests.support.processes.agent_process import (
    NODE,
    Cluster,
    Document,
    agent,
    container,
    has_phase,
    make_pod,
    run_command,
    until,
)

pytestmark = pytest.mark.slow

TAINT = "team=blue:NoExecute"
TOLERATED = [{"operator": "Exists"}]
MISTAKES = {
    "broken.yaml": ("kind: Pod\nmetadata: {name: x\n", "line 3"),
    "unknown.yaml": (
        "kind: Pod\napiVersion: v1\nmetadata: {name: x}\nspec: {containerz: []}\n",
        'unknown field "spec.containerz"',
    ),
    "empty.json": (
        '{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": {}}',
        "spec.containers",
    ),
}
"""Manifests, and what an event has to say of them."""


GREEDY = [{"name": "app", "image": "i", "resources": {"requests": {"cpu": "100"}}}]
REJECTED: dict[str, tuple[Document, str]] = {
    "OutOfcpu": (
        {"containers": GREEDY},
        "Node didn't have enough resource: cpu, requested: 100000, used: 0, capacity: 2000",
    ),
    "NodeAffinity": (
        {"nodeSelector": {"disk": "ssd"}},
        "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    ),
    "TaintToleration": (
        {"tolerations": []},
        "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
    ),
    "OutOfpods": ({}, "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"),
}
"""By the reason, what a pod asks for, and what is said of it. The last one comes when the node is
full."""


def pod(name: str, *, script: str = "", **spec: object) -> Document:
    return make_pod(name, script, NODE, **({"tolerations": TOLERATED} | spec))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One with a taint and room for three pods: a static one, which takes no notice of the taint,
    one with a script that cannot be read, and one that just fits."""
    folder = tmp_path_factory.mktemp("mistakes")
    manifests = folder / "manifests"
    manifests.mkdir()
    for name, (text, _) in MISTAKES.items():
        (manifests / name).write_text(text)
    (manifests / "good.json").write_text(json.dumps(make_pod("good")))
    options = ("--register-with-taints", TAINT, "--max-pods", "3", "--no-samples")
    with agent(folder, *options, "--pod-manifest-path", str(manifests)) as started:
        cluster = started.start_ready()
        cluster.wait_ready(f"good-{NODE}")
        *while_there_is_room, when_full = [
            pod(reason.lower(), **spec) for reason, (spec, _) in REJECTED.items()
        ]
        cluster.create(pod("scripted", script="run=soon"), *while_there_is_room, pod("fits"))
        cluster.wait_ready("fits")
        cluster.create(when_full)
        yield cluster


@pytest.mark.parametrize("file", MISTAKES)
def test_an_invalid_manifest_is_reported_on_the_node_and_others_run(
    node: Cluster, file: str
) -> None:
    event = node.wait_for_event("InvalidManifest", NODE, file)
    assert (event["type"], event["involvedObject"]["kind"]) == ("Warning", "Node")
    assert MISTAKES[file][1] in event["message"]
    assert node.wait_ready(f"good-{NODE}")


@pytest.mark.parametrize("reason", REJECTED)
def test_a_pod_that_cannot_run_here_has_failed_and_says_why(node: Cluster, reason: str) -> None:
    name, message = reason.lower(), REJECTED[reason][1]
    if reason != "TaintToleration":  # That pod is evicted by the API server, and soon gone.
        status = node.wait_for(name, has_phase("Failed"))["status"]
        assert (status["reason"], status["message"]) == (reason, f"Pod was rejected: {message}")
    event = node.wait_for_event(reason, name)
    assert (event["type"], event["message"]) == ("Warning", message)


def test_a_script_that_cannot_be_read_keeps_its_container_waiting(node: Cluster) -> None:
    found = node.wait_for("scripted", is_told_why)
    waiting = container(found)["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert "run=soon" in waiting["message"]
    event = node.wait_for_event("Failed", "scripted", "run=soon")
    assert event["type"] == "Warning"


def is_told_why(pod: Document) -> bool:
    """Whether it says more than that its container is being made."""
    found = pod["status"].get("containerStatuses")
    return bool(found and "message" in found[0]["state"].get("waiting", {}))


def refused(*options: str) -> tuple[int, str]:
    """The exit code of an agent that does not start, and what it says."""
    ran = run_command("run", "--port", "0", "--no-samples", *options)
    assert "Traceback" not in ran.stderr
    return ran.returncode, ran.stderr


def test_a_root_dir_that_cannot_be_used_ends_the_start() -> None:
    # Not even root can create a directory there.
    code, output = refused("--root-dir", "/proc/podstatus")
    assert code == 2
    assert output.startswith("podstatus: cannot use /proc/podstatus: ")
    assert "--root-dir" in output


def test_a_second_agent_reports_the_first(tmp_path: Path) -> None:
    with agent(tmp_path, "--no-samples") as first:
        first.start()
        pid = first.wait_serving()["pid"]
        code, output = refused("--root-dir", str(first.root_dir))
        assert code == 2
        assert (
            f"{first.root_dir} is in use by another agent or observer (pid {pid}, since " in output
        )
        # And it did no harm.
        first.wait_ready(first.cluster)
        assert first.endpoints()["pid"] == pid


@pytest.mark.parametrize("flag", ["--apiserver-port", "--healthz-port"])
def test_a_port_that_is_taken_ends_the_start(tmp_path: Path, flag: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, output = refused("--root-dir", str(tmp_path), flag, str(port))
    assert code == 1
    assert f"ports in use: {port} ({flag}); stop the processes that use them" in output
    assert lock_holder(tmp_path / "apiserver") is None


@pytest.mark.parametrize("name", ["allocated_pods_state", "actuated_pods_state"])
def test_a_damaged_checkpoint_ends_the_start_and_stays_as_it_is(tmp_path: Path, name: str) -> None:
    checkpoint = tmp_path / "checkpoints" / name
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_text('{"data": "{}", "checksum": 1}')
    code, output = refused("--root-dir", str(tmp_path))
    assert code == 2
    assert str(checkpoint) in output
    assert checkpoint.read_text() == '{"data": "{}", "checksum": 1}'


def test_an_unreachable_cluster_is_awaited_and_reported_once(tmp_path: Path) -> None:
    server = ApiServerProcess(tmp_path / "server")
    access = server.start()
    server.kill()
    try:
        with agent(tmp_path, "-v", "4", kubeconfig=access.kubeconfig) as started:
            started.start()
            until(lambda: started.log().count("registering the node failed again") > 2)
            until(lambda: started.log().count("renewing the node lease failed again") > 2)
            warned = [line for line in started.log().splitlines() if " WARNING " in line]
            assert all(f"cannot connect to {access.url}" in line for line in warned)
            assert all("check that it runs, and the server of context" in line for line in warned)
            what_failed = [re.search(r": (.*) failed, will retry: ", line) for line in warned]
            activities = [found[1] for found in what_failed if found]
            assert sorted(activities) == sorted(set(activities))
            assert len(activities) == len(warned)
            server.start()
            started.wait_ready(Cluster(access))
            until(lambda: "registering the node works again" in started.log(), started.log)
    finally:
        server.stop()
