"""`kubectl logs`, `exec` and `attach`, as people type them."""

import os
import pty
import subprocess
import termios
from pathlib import Path

import pytest

from tests.servers.streams.node_scene import NodeScene
from tests.support.processes.kubectl import HOW_TO_GET_IT, KUBECTL, Kubectl
from tests.support.processes.stand_in_node import wait_until

pytestmark = [
    pytest.mark.skipif(KUBECTL is None, reason=HOW_TO_GET_IT),
    pytest.mark.usefixtures("key"),
]

WAITS = 'container "main" in pod "web" is waiting to start: ContainerCreating'


@pytest.fixture
def kubectl(scene: NodeScene, tmp_path: Path) -> Kubectl:
    kubectl = Kubectl(scene.server.access, tmp_path)
    kubectl.command.append(f"--namespace={scene.namespace}")
    return kubectl


@pytest.fixture
def key(scene: NodeScene) -> str:
    key = scene.add_pod()
    scene.thread.write(key, "one", "two", "three")
    scene.thread.write(f"{key}/previous", "before")
    return key


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "one\ntwo\nthree\n"),
        (["--tail=1"], "three\n"),
        (["--previous"], "before\n"),
        (["--tail=1", "--timestamps"], "2024-01-01T00:00:00.000000001Z three\n"),
        (["-c", "main", "--since=5m"], "one\ntwo\nthree\n"),
    ],
)
def test_logs(kubectl: Kubectl, options: list[str], expected: str) -> None:
    assert kubectl("logs", "web", *options) == expected


def test_logs_since_are_asked_for_in_seconds(kubectl: Kubectl, scene: NodeScene) -> None:
    kubectl("logs", "web", "--since=5m", "--limit-bytes=100")
    assert dict(scene.node.asked[0].query) == {"sinceSeconds": "300", "limitBytes": "100"}


def test_logs_are_followed(kubectl: Kubectl, scene: NodeScene, key: str) -> None:
    with kubectl.running("logs", "-f", "web") as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == ["one\n", "two\n", "three\n"]
        scene.thread.write(key, "four", "END")
        assert process.stdout.read() == "four\nEND\n"
        assert process.wait(90) == 0


def test_logs_nobody_follows_any_more_are_let_go(kubectl: Kubectl, scene: NodeScene) -> None:
    with kubectl.running("logs", "-f", "web") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"
    wait_until(lambda: scene.node.open_streams == 0)


def test_logs_of_a_container_that_waits_say_so(
    kubectl: Kubectl, scene: NodeScene, key: str
) -> None:
    scene.node.refusals[key] = (400, WAITS)
    ran = kubectl.run("logs", "web")
    assert (ran.code, ran.errors) == (1, f"Error from server (BadRequest): {WAITS}\n")


def test_exec_prints_what_the_command_does(kubectl: Kubectl) -> None:
    assert kubectl("exec", "web", "--", "echo", "a  b", "$c") == "a  b $c\n"


def test_exec_tells_errors_from_output(kubectl: Kubectl) -> None:
    ran = kubectl.run("exec", "web", "--", "complain", "no")
    assert (ran.code, ran.out, ran.errors) == (0, "", "no\n")


def test_exec_ends_as_the_command_does(kubectl: Kubectl) -> None:
    ran = kubectl.run("exec", "web", "--", "exit", "7")
    assert (ran.code, ran.errors) == (7, "command terminated with exit code 7\n")


def test_exec_hands_over_input(kubectl: Kubectl) -> None:
    text = "some\nmore\n" * 20_000
    assert kubectl("exec", "-i", "web", "--", "cat", input=text) == text


def test_exec_has_a_terminal_of_the_right_size(kubectl: Kubectl, scene: NodeScene) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (43, 132))
    process = subprocess.Popen(
        [*kubectl.command, "exec", "-it", "web", "--", "size"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=kubectl.environment,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        assert process.wait(90) == 0
        assert b"132x43" in os.read(ours, 4096)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert ("tty", "1") in scene.node.asked[0].query


def test_attach_shows_the_container(kubectl: Kubectl) -> None:
    assert kubectl.run("attach", "web").out == "attached\n"


def test_exec_on_a_node_that_does_not_listen_says_so(kubectl: Kubectl, scene: NodeScene) -> None:
    scene.add_pod("dark", node=scene.add_node(1))
    ran = kubectl.run("exec", "dark", "--", "echo")
    told = "error dialing backend: dial tcp 127.0.0.1:1: connect: connection refused"
    assert ran.code == 1
    assert told in ran.errors


def test_a_node_that_refuses_with_a_status_is_quoted(
    kubectl: Kubectl, scene: NodeScene, key: str
) -> None:
    # In plain text kubectl would not show it when it comes by way of a real server.
    status = (
        '{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", '
        '"message": "container main is not running", "reason": "BadRequest", "code": 400}'
    )
    scene.node.refusals[key] = (400, status)
    ran = kubectl.run("exec", "web", "--", "echo")
    assert ran.code == 1
    assert "container main is not running" in ran.errors


def test_kubectl_that_speaks_spdy_is_told_what_to_do(kubectl: Kubectl) -> None:
    kubectl.environment["KUBECTL_REMOTE_COMMAND_WEBSOCKETS"] = "false"
    ran = kubectl.run("exec", "web", "--", "echo")
    assert ran.code == 1
    assert "WebSocket" in ran.errors
