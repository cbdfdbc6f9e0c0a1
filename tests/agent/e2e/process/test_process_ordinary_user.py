"""Without root or bubblewrap pods run, too; unsupported features are reported."""

from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest

from tests.support.processes.agent_process import (
    Document,
    condition,
    container,
    run_command,
    until,
)
from tests.support.processes.process_node import (
    ISOLATIONS,
    ProcessNode,
    command_pod,
    need_nobody,
    pod_of,
    process_node,
)

pytestmark = pytest.mark.slow

SAMPLES = ("web", "worker")
NOWHERE = "/nonexistent"
"""A PATH without bubblewrap; the agent needs nothing of it."""
_LIMITED = {"resources": {"limits": {"memory": "64Mi", "cpu": "500m"}}}


@pytest.fixture(scope="module", params=ISOLATIONS)
def node(request: pytest.FixtureRequest) -> Iterator[ProcessNode]:
    """An agent of the user `nobody`, with the two sample pods."""
    user = need_nobody()
    with process_node(isolation=request.param, user=user, samples=True) as node:
        node.start_ready()
        yield node


def test_the_whole_of_it_is_an_ordinary_users(node: ProcessNode) -> None:
    node.cluster.wait_ready(*SAMPLES)
    users = []
    for process in node.family():
        with suppress(psutil.NoSuchProcess):  # a probe that has just ended
            users.append(process.uids())
    assert len(users) > 6
    assert {user.effective for user in users} == {65534}
    assert {user.real for user in users} == {65534}


def test_samples_become_ready_and_talk(node: ProcessNode) -> None:
    node.cluster.wait_ready(*SAMPLES)
    node.wait_for_log("web", "served request 1")
    node.wait_for_log("worker", "passed on 1 requests", "proxy")
    said, status = node.exec("web", "sh", "-c", "id -u; exit 3")
    assert said == "65534\n"
    assert (status["reason"], status["details"]["causes"][0]["message"]) == ("NonZeroExitCode", "3")


def test_limits_that_cannot_be_enforced_are_reported(node: ProcessNode) -> None:
    node.cluster.create(command_pod("limited", "sleep", "1000", container=_LIMITED))
    node.cluster.wait_ready("limited")
    node.cluster.wait_for_event("LimitsNotEnforced", "limited", "run the agent as root")


def test_another_user_is_refused_with_a_remedy(node: ProcessNode) -> None:
    context = {"securityContext": {"runAsUser": 0}}
    node.cluster.create(command_pod("root", "true", container=context))
    pod = node.cluster.wait_for("root", lambda pod: waiting(pod).get("message"))
    assert waiting(pod)["reason"] == "CreateContainerConfigError"
    assert "run it as root" in waiting(pod)["message"]


def test_pods_outlive_their_agent_and_end_when_deleted(node: ProcessNode) -> None:
    node.cluster.create(command_pod("stays", "sleep", "1000"))
    (before,) = node.cluster.wait_ready("stays")
    assert node.stop() == 0
    node.start_ready()
    (now,) = node.cluster.wait_ready("stays")
    assert container(now) == container(before)
    assert condition(now, "Ready") == condition(before, "Ready")
    folder = node.pod_folder("stays")
    assert folder.is_dir()
    node.cluster.delete("stays")
    node.cluster.wait_gone("stays")
    until(lambda: not folder.exists(), node.log)


@pytest.fixture(scope="module", params=["ourselves", "ordinary user"])
def bare(request: pytest.FixtureRequest) -> Iterator[ProcessNode]:
    """Where there is no bubblewrap, and isolation is left to the agent."""
    user = need_nobody() if request.param == "ordinary user" else None
    with process_node(isolation="auto", user=user, path=NOWHERE) as node:
        node.start_ready()
        yield node


MOUNTS: dict[str, tuple[Document, str]] = {
    "empty": ({"emptyDir": {}}, "mount it below /tmp"),
    "host": ({"hostPath": {"path": "/etc"}}, "remove it"),
    "secret": ({"secret": {"secretName": "s"}}, "remove it"),
    "config": ({"configMap": {"name": "c"}}, "remove it"),
}


@pytest.mark.parametrize("kind", MOUNTS)
def test_without_bubblewrap_pods_that_need_mounts_say_so(bare: ProcessNode, kind: str) -> None:
    source, instead = MOUNTS[kind]
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/data"}]}
    name = f"mount-{kind}"
    bare.cluster.create(
        command_pod(name, "true", container=mount, volumes=[{"name": "v", **source}])
    )
    pod = bare.cluster.wait_for(name, lambda pod: waiting(pod).get("message"))
    assert waiting(pod)["reason"] == "CreateContainerConfigError"
    for text in ("containers are not isolated here", "apt install bubblewrap", instead):
        assert text in waiting(pod)["message"]
        bare.cluster.wait_for_event("Failed", name, text)
    shown = run_command("get", "pods", "--root-dir", str(bare.root_dir), check=True)
    (line,) = (line for line in shown.stdout.splitlines() if f" {name} " in f" {line} ")
    assert "CreateContainerConfigError" in line


def test_without_bubblewrap_the_others_run(bare: ProcessNode) -> None:
    bare.cluster.create(
        command_pod("runs", "sh", "-c", "echo hello; sleep 1000"),
        pod_of("two", {"command": ["sleep", "1000"]}, {"command": ["sleep", "1000"]}),
    )
    bare.cluster.wait_ready("runs", "two")
    bare.wait_for_log("runs", "hello")
    said, _ = bare.exec("runs", "echo", "hi")
    assert said == "hi\n"
    assert "pods are not isolated from this machine: error=bwrap is not on PATH" in bare.log()
    node = bare.cluster.node()
    assert node is not None
    assert node["metadata"]["labels"]["podstatus.dev/isolation"] == "none"


@pytest.mark.parametrize("user", ["ourselves", "ordinary user"])
def test_isolation_that_cannot_be_had_is_no_start(user: str) -> None:
    who = need_nobody() if user == "ordinary user" else None
    with process_node(isolation="bubblewrap", user=who, path=NOWHERE) as node:
        node.start()
        assert node.wait() == 2
        # A busy machine may add that it did not let the API server end in time.
        (line,) = (line for line in node.log().splitlines() if line.startswith("podstatus: "))
        assert "Traceback" not in node.log()
        for text in ("--isolation", "bwrap is not on PATH", "apt install bubblewrap"):
            assert text in line


def waiting(pod: Document) -> Document:
    """Why its container waits, if it does and something is said of it."""
    for status in pod["status"].get("containerStatuses") or ():
        found: Document = status["state"].get("waiting", {})
        return found
    return {}
