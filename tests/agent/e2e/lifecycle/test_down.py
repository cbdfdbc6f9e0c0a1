"""`podstatus stop`, `down`, `delete` and `exec` with an agent process: what runs afterwards."""

import subprocess
from collections.abc import Iterator

import psutil
import pytest

from tests.support.processes.agent_process import ENVIRONMENT, SECONDS, until
from tests.support.processes.process_node import ProcessNode, command_pod, process_node
from tests.support.processes.programs import COMMAND

pytestmark = pytest.mark.slow

FOREVER = ("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done")
DEAF = ("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
STATIC = """
apiVersion: v1
kind: Pod
metadata: {name: static}
spec:
  containers: [{name: app, image: a, command: [sleep, "1000"]}]
  terminationGracePeriodSeconds: 1
"""


@pytest.fixture
def node() -> Iterator[ProcessNode]:
    with process_node(isolation="none") as node:
        yield node


def podstatus(node: ProcessNode, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, words[0], "--root-dir", str(node.root_dir), *words[1:]],
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def processes(node: ProcessNode) -> list[psutil.Process]:
    """All processes of the agent and of its pods."""
    shims = [psutil.Process(node.shim(pod["metadata"]["name"]).process.pid) for pod in pods(node)]
    return [*node.family(), *shims, *(it for shim in shims for it in shim.children(recursive=True))]


def pods(node: ProcessNode) -> list[dict[str, dict[str, str]]]:
    return [pod for pod in node.cluster.pods() if "static" not in pod["metadata"]["name"]]


def transitions(node: ProcessNode, name: str) -> list[dict[str, str]]:
    return list(node.ask(f"/v1/pods/default/{name}/timeline")["transitions"])


def assert_ended(running: list[psutil.Process]) -> None:
    assert len(running) > 3
    until(lambda: not any(it.is_running() for it in running), lambda: running)


def test_a_running_node_is_taken_down(node: ProcessNode) -> None:
    manifests = node.folder / "manifests"
    manifests.mkdir()
    (manifests / "static.yaml").write_text(STATIC)
    node.words += ["--pod-manifest-path", str(manifests)]
    cluster = node.start_ready()
    cluster.create(command_pod("web", *FOREVER), command_pod("db", *FOREVER))
    cluster.wait_ready("web", "db", f"static-{node.node}")
    running = processes(node)
    result = podstatus(node, "down", "--yes")
    assert (result.returncode, result.stderr) == (0, "")
    assert "terminating 2 pods: default/db, default/web; at most 2 s\n" in result.stdout
    assert node.wait() == 0
    assert_ended(running)
    assert not list(node.pods_folder.iterdir())


def test_what_a_killed_agent_left_is_taken_down(node: ProcessNode) -> None:
    cluster = node.start_ready()
    cluster.create(command_pod("web", *FOREVER))
    cluster.wait_ready("web")
    running = processes(node)
    # The history is written every 0.25 s; without an entry, the pod has no end either.
    until(lambda: transitions(node, "web"))
    node.kill()
    result = podstatus(node, "status")
    assert (result.returncode, "containers of default/web" in result.stdout) == (1, True)
    result = podstatus(node, "down", "--yes")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(
        "terminating the containers of 1 pod: default/web; at most 30 s\n"
    )
    assert_ended(running)
    assert node.start_ready().pods() == []
    ends = until(lambda: [it for it in transitions(node, "web") if it["kind"] == "finished"])
    assert [end["reason"] for end in ends] == ["RemovedDuringDowntime"]
    assert transitions(node, "web")[-2]["kind"] == "away"


def test_while_leftovers_end_the_directory_is_in_use_and_the_last_pods_are_named(
    node: ProcessNode,
) -> None:
    cluster = node.start_ready()
    cluster.create(command_pod("web", *FOREVER), command_pod("deaf", *DEAF))
    cluster.wait_ready("web", "deaf")
    running = processes(node)
    node.kill()
    words = [*COMMAND, "down", "--root-dir", str(node.root_dir), "--yes", "--grace-period", "5"]
    with subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as down:
        assert down.stdout is not None
        first = down.stdout.readline()
        message = f"podstatus down is in progress in {node.root_dir} (pid {down.pid}, since "
        for command in ("run", "stop", "status", "get pods", "down --yes"):
            result = podstatus(node, *command.split())
            assert (result.returncode, message in result.stderr) in ((1, True), (2, True)), command
        rest, _ = down.communicate(timeout=SECONDS)
    assert first == "terminating the containers of 2 pods: default/deaf, default/web; at most 5 s\n"
    assert rest == (
        "waiting for 1 pod: default/deaf\n"
        f"all containers have stopped; the files of the node are in {node.root_dir}\n"
    )
    assert_ended(running)


def test_a_stopped_agent_leaves_containers_that_down_ends_with_their_files(
    node: ProcessNode,
) -> None:
    cluster = node.start_ready()
    cluster.create(command_pod("web", *FOREVER))
    cluster.wait_ready("web")
    running = processes(node)
    stopped = podstatus(node, "stop")
    assert stopped.returncode == 0, stopped.stderr
    assert "; the containers of 1 pod keep running; to continue with them: " in stopped.stdout
    assert node.wait() == 0
    assert any(process.is_running() for process in running)
    again = podstatus(node, "stop")
    assert (again.returncode, "; to end them: podstatus down --root-dir" in again.stderr) == (
        1,
        True,
    )
    result = podstatus(node, "down", "--yes", "--remove-files")
    assert result.returncode == 0, result.stderr
    assert_ended(running)
    assert not node.root_dir.exists()


def test_exec_and_delete_reach_the_containers(node: ProcessNode) -> None:
    cluster = node.start_ready()
    cluster.create(command_pod("web", *FOREVER))
    cluster.wait_ready("web")
    inside = podstatus(node, "exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (inside.returncode, inside.stdout, inside.stderr) == (3, "out\n", "err\n")
    shim = psutil.Process(node.shim("web").process.pid)
    deleted = podstatus(node, "delete", "pod", "web")
    assert deleted.stdout == 'pod "web" deleted from default namespace\n'
    assert cluster.pod("web") is None
    until(lambda: not shim.is_running())
    assert podstatus(node, "status").stdout.count("pods        none\n") == 1
