"""`podstatus run` in an empty directory: a node with sample pods."""

import json
import shlex
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from podstatus.cli.program import PROGRAM_VARIABLE
from podstatus.cli.register_commands import app
from tests.support.processes.agent_process import (
    ENVIRONMENT,
    AgentProcess,
    Document,
    agent,
    condition,
    is_ready,
    make_pod,
)


def printed(started: AgentProcess, program: str) -> list[str]:
    """The words of the command that it says to type next."""
    lines = started.log().splitlines()
    (line,) = (line for line in lines if line.startswith("  ") and program in line)
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


def test_a_node_with_two_sample_pods_is_there_soon(tmp_path: Path) -> None:
    with agent(tmp_path / "a folder") as started:
        as_typed = shlex.join([sys.executable, "-P", "-m", "podstatus.cli"])
        started.environment = ENVIRONMENT | {PROGRAM_VARIABLE: as_typed}
        cluster = started.start_ready()
        cluster.wait_ready("web", "worker")
        for pod in cluster.pods():
            assert pod["status"]["phase"] == "Running"
            assert pod["spec"]["nodeName"] == started.node
        table = said(printed(started, "podstatus.cli get"), tmp_path)
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


def sent_at(pod: Document) -> float:
    """When its status came to the server, by the server's own clock."""
    entries = pod["metadata"]["managedFields"]
    (status,) = (entry for entry in entries if entry.get("subresource") == "status")
    return seconds(status["time"])


def seconds(wire: str) -> float:
    return datetime.fromisoformat(wire).timestamp()


def are_two(one: Document, other: Document) -> bool:
    return bool(one["metadata"]["uid"] != other["metadata"]["uid"])


def test_a_static_pod_is_shown_as_soon_as_it_has_a_mirror_pod(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "a.json").write_text(json.dumps(make_pod("a")))
    with agent(tmp_path, "--no-samples", "--pod-manifest-path", str(manifests)) as started:
        cluster = started.start_ready()
        name = f"a-{started.node}"
        (first,) = cluster.wait_ready(name)
        # It is already running when the next agent starts: there is nothing to report.
        cluster.delete(name)
        mirror = cluster.wait_for(name, lambda pod: is_ready(pod) and are_two(pod, first))
        began = mirror["metadata"]["creationTimestamp"]
        assert condition(mirror, "Ready") == condition(first, "Ready")
        assert sent_at(mirror) - seconds(began) < 8, "not only with the reconcile after ten seconds"


@pytest.mark.parametrize("what", ["pods", "node", "events"])
def test_commands_without_an_agent_print_how_to_start_one(tmp_path: Path, what: str) -> None:
    ran = CliRunner().invoke(app, ["get", what, "--root-dir", str(tmp_path)])
    assert ran.exit_code == 1
    assert f"start one with: podstatus run --root-dir {tmp_path}" in ran.stderr
