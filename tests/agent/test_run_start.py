"""`podstatus run` from nothing: a node with pods to look at, for whoever has no cluster."""

import json
import shlex
import shutil
import subprocess
import time
from datetime import datetime
from pathlib import Path

import pytest

from tests.agent_process import ENVIRONMENT, AgentProcess, agent, condition, make_pod
from tests.programs import COMMAND


def printed(started: AgentProcess, program: str) -> list[str]:
    """The words of the command that it says to type next."""
    lines = started.log().splitlines()
    (line,) = (line for line in lines if line.startswith("    ") and program in line)
    return shlex.split(line)


def said(words: list[str], home: Path) -> str:
    ran = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=ENVIRONMENT | {"HOME": str(home)},
    )
    assert (ran.returncode, ran.stderr) == (0, ""), words
    return ran.stdout


def test_a_node_with_two_sample_pods_is_there_within_ten_seconds(tmp_path: Path) -> None:
    began = time.monotonic()
    with agent(tmp_path / "a folder") as started:
        cluster = started.start_ready()
        cluster.wait_ready("web", "worker")
        assert time.monotonic() - began < 10
        for pod in cluster.pods():
            assert pod["status"]["phase"] == "Running"
            assert pod["spec"]["nodeName"] == started.node
        table = said(printed(started, "podstatus.agent get"), tmp_path)
        assert [line.split()[1:4] for line in table.splitlines()[1:]] == [
            ["web", "1/1", "Running"],
            ["worker", "2/2", "Running"],
        ]
        assert started.health() == (200, "ok")
        assert cluster.wait_for_event("Starting", started.node)["count"] == 1
        if shutil.which("kubectl"):
            by_kubectl = said(printed(started, "kubectl "), tmp_path)
            columns = [line.split()[:5] for line in table.splitlines()]
            assert [line.split()[:5] for line in by_kubectl.splitlines()] == columns


def test_samples_are_made_for_those_who_want_them_and_have_no_pods(tmp_path: Path) -> None:
    with agent(tmp_path, "--no-samples") as bare:
        cluster = bare.start_ready()
        cluster.create(make_pod("mine"))
        cluster.wait_ready("mine")
        assert [pod["metadata"]["name"] for pod in cluster.pods()] == ["mine"]
        bare.stop()
    with agent(tmp_path) as again:
        cluster = again.start_ready()
        cluster.create(make_pod("later"))
        cluster.wait_ready("later")
        assert [pod["metadata"]["name"] for pod in cluster.pods()] == ["later", "mine"]


def test_a_static_pod_is_shown_as_soon_as_it_has_a_mirror_pod(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "a.json").write_text(json.dumps(make_pod("a")))
    with agent(tmp_path, "--no-samples", "--pod-manifest-path", str(manifests)) as started:
        cluster = started.start_ready()
        name = f"a-{started.node}"
        began = cluster.wait_for(name, lambda mirror: mirror)["metadata"]["creationTimestamp"]
        (mirror,) = cluster.wait_ready(name)
        # It runs for a second by then: nothing happens to it any more that would be told.
        assert condition(mirror, "Ready")["lastTransitionTime"] <= began
        sent = time.time() - datetime.fromisoformat(began).timestamp()
        assert sent < 8, "not only with the reconcile after ten seconds"


@pytest.mark.parametrize("what", ["pods", "node", "events"])
def test_who_asks_where_no_agent_runs_is_told_how_to_start_one(tmp_path: Path, what: str) -> None:
    ran = subprocess.run(
        [*COMMAND, "get", what, "--root-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert ran.returncode == 1
    assert f"start one with: podstatus run --root-dir {tmp_path}" in ran.stderr
