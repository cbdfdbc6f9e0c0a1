"""`kubectl run` as people try it first: a shell on a terminal, and an image without a command."""

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.agent_process import (
    ENVIRONMENT,
    AgentProcess,
    Document,
    agent,
    container,
    has_phase,
)
from tests.support.processes.kubectl import HOW_TO_GET_IT, KUBECTL
from tests.support.processes.mortal_node import ISOLATIONS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(KUBECTL is None, reason=HOW_TO_GET_IT)]


@pytest.fixture(params=ISOLATIONS)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentProcess]:
    options = ("--runtime", "process", "--isolation", request.param, "--no-samples")
    with agent(tmp_path, *options) as started:
        started.start_ready()
        yield started


def kubectl(node: AgentProcess, *arguments: str, terminal: int = subprocess.DEVNULL) -> str:
    command = (str(KUBECTL), "--kubeconfig", str(node.root_dir / "kubeconfig"), *arguments)
    ran = subprocess.run(
        command,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=90,
        env=ENVIRONMENT | {"HOME": str(node.root_dir)},
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def test_a_shell_on_a_terminal_ends_succeeded(node: AgentProcess) -> None:
    keyboard, terminal = os.openpty()
    os.write(keyboard, b"echo answer=$((6 * 7))\nexit\n")
    run = ("run", "-it", "shell", "--image=busybox", "--restart=Never")
    shown = kubectl(node, *run, "--", "sh", "-i", terminal=terminal)
    assert "answer=42" in shown
    assert "tty" not in shown
    pod = node.cluster.wait_for("shell", has_phase("Succeeded"))
    assert container(pod)["state"]["terminated"]["exitCode"] == 0
    os.close(keyboard)
    os.close(terminal)


def test_an_image_without_a_command_shows_the_remedy(node: AgentProcess) -> None:
    cluster = node.cluster
    kubectl(node, "run", "nginx", "--image=nginx")
    pod = cluster.wait_for("nginx", _is_waiting)
    remedy = (
        "kubectl run nginx --image=nginx --command -- sh -c 'trap exit TERM; sleep infinity & wait'"
    )
    assert container(pod)["state"]["waiting"]["message"].endswith(remedy)
    cluster.wait_for_event("Pulled", "nginx", "the process runtime runs programs on the host")
    kubectl(node, "delete", "pod", "nginx")
    kubectl(node, *shlex.split(remedy)[1:])
    (pod,) = cluster.wait_ready("nginx")
    assert container(pod)["imageID"] == ""


def _is_waiting(pod: Document) -> bool:
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    return [s["state"].get("waiting", {}).get("reason") for s in statuses] == [
        "CreateContainerError"
    ]
