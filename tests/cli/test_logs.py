"""`podstatus logs` against a fake agent, and foreign text on a terminal."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from podstatus.cli.print_logs import DEFAULT_CONTAINER_ANNOTATION
from podstatus.cli.register_commands import app
from podstatus.testing.apiserver import ApiServerThread, running_api_server
from tests.cli.fake_node import FakeNode, fake_node
from tests.support.certificates import authority
from tests.support.processes.agent_process import ENVIRONMENT, SECONDS
from tests.support.processes.on_terminal import on_terminal
from tests.support.processes.programs import COMMAND

HOSTILE = b"\x1b]0;owned\x07\x1b[2Jgone\rover \x9b31m \xc2\x9b caf\xc3\xa9\ttab \xff\n"
HARMLESS = "^[]0;owned^G^[[2Jgone^Mover \\x9b31m \\x9b café\ttab \\xff\n".encode()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[FakeNode]:
    with fake_node(tmp_path) as node:
        node.pods = [make_pod("web")]
        yield node


def make_pod(
    name: str, *containers: str, default: str = "", namespace: str = "default", init: str = ""
) -> dict[str, Any]:
    annotations = {DEFAULT_CONTAINER_ANNOTATION: default} if default else {}
    spec = {
        "containers": [{"name": container} for container in containers or ("app",)],
        "initContainers": [{"name": init}] if init else [],
    }
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    return {"metadata": metadata, "spec": spec}


def logs(root_dir: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["logs", *words, "--root-dir", str(root_dir)])


def test_a_log_is_printed_byte_by_byte(node: FakeNode, tmp_path: Path) -> None:
    node.log = (HOSTILE[:1], HOSTILE[1:4], HOSTILE[4:])
    result = logs(tmp_path, "web")
    assert (result.exit_code, result.stdout_bytes, result.stderr) == (0, HOSTILE, "")
    assert node.asked[-1] == "/containerLogs/default/web/app"


@pytest.mark.parametrize("pod", ["pod/web", "pods/web", "po/web"])
def test_a_pod_may_be_named_with_its_type(node: FakeNode, tmp_path: Path, pod: str) -> None:
    assert logs(tmp_path, pod).exit_code == 0
    assert node.asked[-1] == "/containerLogs/default/web/app"


@pytest.mark.parametrize(
    ("words", "query"),
    [
        (("-f",), "follow=true"),
        (("--previous",), "previous=true"),
        (("-p", "--timestamps"), "previous=true&timestamps=true"),
        (("--tail", "0"), "tailLines=0"),
        (("--tail=20", "--since", "5m"), "tailLines=20&sinceSeconds=300"),
        (("--since=100ms",), "sinceSeconds=1"),
    ],
)
def test_options_arrive_as_the_kubelet_calls_them(
    node: FakeNode, tmp_path: Path, words: tuple[str, ...], query: str
) -> None:
    assert logs(tmp_path, "web", *words).exit_code == 0
    assert node.asked[-1] == f"/containerLogs/default/web/app?{query}"


@pytest.mark.parametrize(
    ("pod", "words", "chosen", "message"),
    [
        (make_pod("web", "a"), (), "a", ""),
        (make_pod("web", "a", "b"), ("-c", "b"), "b", ""),
        (make_pod("web", "a", init="i"), ("-c", "i"), "i", ""),
        (make_pod("web", "a", "b", default="b"), (), "b", ""),
        (
            make_pod("web", "a", "b", init="i"),
            (),
            "a",
            'Defaulted container "a" out of: a, b, i (init)\n',
        ),
        (
            make_pod("web", "a", default="x"),
            (),
            "a",
            'Default container name "x" not found in pod web\n',
        ),
    ],
)
def test_the_container_is_the_one_that_kubectl_chooses(
    node: FakeNode,
    tmp_path: Path,
    pod: dict[str, Any],
    words: tuple[str, ...],
    chosen: str,
    message: str,
) -> None:
    node.pods = [make_pod("web", "other", namespace="elsewhere"), pod]
    result = logs(tmp_path, "web", *words)
    assert node.asked[-1] == f"/containerLogs/default/web/{chosen}"
    assert (result.exit_code, result.stdout, result.stderr) == (0, "one\n", message)


def test_another_namespace_is_named(node: FakeNode, tmp_path: Path) -> None:
    node.pods = [make_pod("web", "a"), make_pod("web", "b", namespace="other")]
    assert logs(tmp_path, "web", "-n", "other").stdout == "one\n"
    assert node.asked[-1] == "/containerLogs/other/web/b"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ("none",),
            1,
            "no pod 'none' in namespace default is bound to node n1; to see why: podstatus",
        ),
        (("web", "-c", "x"), 1, "container x is not valid for pod web out of: app"),
        (("web", "--since", "soon"), 2, "--since: 'soon' is not a duration such as 10s"),
        (("web", "--since=-1s"), 2, "--since must be greater than 0"),
    ],
)
@pytest.mark.usefixtures("node")
def test_mistakes_are_one_line(
    tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    result = logs(tmp_path, *words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith(f"podstatus: {message}")
    assert len(result.stderr.splitlines()) == 1


def test_a_deleted_pod_has_a_history(node: FakeNode, tmp_path: Path) -> None:
    node.responses["/v1/pods/other/gone/timeline"] = {"transitions": [{"id": 1}]}
    result = logs(tmp_path, "gone", "-n", "other")
    assert result.exit_code == 1
    assert result.stderr == (
        "podstatus: no pod 'gone' in namespace other is bound to node n1; to see what happened to "
        f"an earlier one: podstatus timeline gone -n other --root-dir {tmp_path}; to see why a new "
        f"one is not bound: podstatus describe pod gone -n other --root-dir {tmp_path}\n"
    )


def test_an_error_response_is_printed_verbatim(node: FakeNode, tmp_path: Path) -> None:
    message = 'previous terminated container "app" in pod "web" not found'
    node.refusal = (400, message)
    result = logs(tmp_path, "web")
    assert (result.exit_code, result.stderr) == (1, f"podstatus: {message}\n")
    node.refusal = (500, "")
    assert "the agent answered 500 Internal Server Error" in logs(tmp_path, "web").stderr


def test_a_container_that_waits_has_its_reason_in_the_description(
    node: FakeNode, tmp_path: Path
) -> None:
    message = 'container "app" in pod "web" is waiting to start: ContainerCreating'
    node.refusal = (400, message)
    node.pods = [make_pod("web", "app", namespace="other")]
    result = logs(tmp_path, "web", "-n", "other")
    describe = f"podstatus describe pod web -n other --root-dir {tmp_path}"
    assert (result.exit_code, result.stderr) == (
        1,
        f"podstatus: {message}; to see why: {describe}\n",
    )


@pytest.mark.parametrize(
    ("reason", "last", "log", "says"),
    [
        ("RunContainerError", "StartError", (), "RunContainerError"),
        ("CrashLoopBackOff", "StartError", (), "CrashLoopBackOff"),
        ("CrashLoopBackOff", "Error", (), ""),
        ("RunContainerError", "Error", (b"one\n",), ""),
    ],
)
def test_an_empty_log_of_a_container_that_cannot_start_has_a_reason(
    node: FakeNode, tmp_path: Path, reason: str, last: str, log: tuple[bytes, ...], says: str
) -> None:
    state = {"waiting": {"reason": reason}}
    last_state = {"terminated": {"exitCode": 128, "reason": last}}
    status = {"name": "app", "state": state, "lastState": last_state}
    node.pods = [make_pod("web") | {"status": {"containerStatuses": [status]}}]
    node.log = log
    message = (
        f'podstatus: container "app" in pod "web" is waiting to start: {says}; to see why: '
        f"podstatus describe pod web --root-dir {tmp_path}\n"
    )
    result = logs(tmp_path, "web")
    assert (result.exit_code, result.stderr) == ((1, message) if says else (0, ""))
    assert logs(tmp_path, "web", "--previous").exit_code == 0


def test_a_log_that_breaks_off_is_no_whole_log(node: FakeNode, tmp_path: Path) -> None:
    node.breaks_off = True
    result = logs(tmp_path, "web")
    assert (result.exit_code, result.stdout) == (1, "one\n")
    assert f"the response of the agent at {node.url} is incomplete" in result.stderr


def test_only_the_agent_gets_the_token(tmp_path: Path) -> None:
    (tmp_path / "other.crt").write_bytes(authority("other").pem)
    other = str(tmp_path / "other.crt")
    with fake_node(tmp_path / "root", agent_certificate=other) as node:
        result = logs(tmp_path / "root", "web")
    assert result.exit_code == 1
    assert "certificate verify failed" in result.stderr
    assert node.asked == []


def test_a_missing_or_unreachable_agent_is_reported(tmp_path: Path) -> None:
    assert f"no agent runs in {tmp_path}" in logs(tmp_path, "web").stderr
    with fake_node(tmp_path, agent=""):
        assert "the agent has no HTTPS server" in logs(tmp_path, "web").stderr
    with fake_node(tmp_path, agent="https://127.0.0.1:1"):
        message = "request to the agent at https://127.0.0.1:1 failed: "
        assert message in logs(tmp_path, "web").stderr


def test_what_follows_is_printed_when_it_is_written(node: FakeNode, tmp_path: Path) -> None:
    node.log = (b"one\n", b"two\n")
    node.may_go_on.clear()
    words = [*COMMAND, "logs", "web", "-f", "--root-dir", str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"one\n"
        node.may_go_on.set()
        assert process.stdout.read() == b"two\n"
        assert process.wait(SECONDS) == 0


def test_a_terminal_shows_a_log_and_does_not_obey_it(node: FakeNode, tmp_path: Path) -> None:
    node.log = tuple(HOSTILE[i : i + 1] for i in range(len(HOSTILE)))
    code, got = on_terminal("logs", "web", "--root-dir", str(tmp_path))
    assert (code, got) == (0, HARMLESS)


def test_a_terminal_does_not_obey_a_refusal(node: FakeNode, tmp_path: Path) -> None:
    node.refusal = (400, "no\x1b[2J\x9b")
    code, got = on_terminal("logs", "web", "--root-dir", str(tmp_path))
    assert (code, got) == (1, b"podstatus: no^[[2J\\x9b\n")


def test_a_terminal_that_lacks_a_character_gets_its_number(node: FakeNode, tmp_path: Path) -> None:
    node.log = ("é\n".encode(),)
    latin = {"PYTHONIOENCODING": "ascii"}
    words = ("logs", "web", "--root-dir", str(tmp_path))
    assert on_terminal(*words, environment=latin)[1] == b"\\xe9\n"


EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\rx"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServerThread]:
    with running_api_server(tmp_path_factory.mktemp("served") / "apiserver") as server:
        make_hostile(server)
        yield server


def make_hostile(server: ApiServerThread) -> None:
    """A pod, a status and an event that say what they should not."""
    path = "/api/v1/namespaces/default"
    spec = {"containers": [{"name": "app", "image": "x", "command": [EVIL, "a\nStatus: fine"]}]}
    metadata = {"name": "web", "annotations": {"a": EVIL}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web"},
        "type": "Normal",
        "reason": "Evil",
        "message": f"{EVIL}\nStatus: fine",
    }
    waiting = {"reason": EVIL, "message": f"{EVIL}\nStatus: fine"}
    named = {"name": "app", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    conditions = [{"type": "Ready", "status": "False", "message": f"{EVIL}\nStatus: fine"}]
    status = {
        "phase": "Pending",
        "message": f"{EVIL}\nStatus: fine",
        "conditions": conditions,
        "containerStatuses": [{**named, "state": {"waiting": waiting}}],
    }
    for kind, body in (("pods", pod), ("events", event)):
        code, answer = server.request("POST", f"{path}/{kind}", body)
        assert code == 201, answer
    patch = "application/strategic-merge-patch+json"
    code, answer = server.request("PATCH", f"{path}/pods/web/status", {"status": status}, patch)
    assert code == 200, answer


@pytest.mark.parametrize(
    "words",
    [
        ("get", "pods"),
        ("get", "pods", "-o", "wide"),
        ("get", "pods", "-o", "json"),
        ("get", "pods", "-o", "yaml"),
        ("get", "events"),
        ("get", "pods", EVIL),
        ("get", EVIL),
        ("describe", "pod", "web"),
    ],
)
def test_a_terminal_obeys_nothing_of_what_a_pod_or_a_server_says(
    server: ApiServerThread, words: tuple[str, ...]
) -> None:
    _, got = on_terminal(*words, "--kubeconfig", str(server.kubeconfig))
    text = got.decode()
    assert "owned" in text
    ours = ("\x1b[1m", "\x1b[0m", "\x1b[31m", "\x1b[32m", "\x1b[33m")
    for colour in ours:
        text = text.replace(colour, "")
    assert not [char for char in text if char in "\x1b\x07\x9b\u202e\r"]


def test_a_file_gets_what_the_server_said(server: ApiServerThread) -> None:
    words = [*COMMAND, "get", "pods", "-o", "json", "--kubeconfig", str(server.kubeconfig)]
    done = subprocess.run(words, stdout=subprocess.PIPE, env=ENVIRONMENT, check=True)
    (pod,) = json.loads(done.stdout)["items"]
    assert pod["metadata"]["annotations"]["a"] == EVIL


def test_no_text_of_others_passes_for_a_line_of_ours(server: ApiServerThread) -> None:
    words = ["describe", "pod", "web", "--kubeconfig", str(server.kubeconfig)]
    text = CliRunner().invoke(app, words).stdout
    found = [line for line in text.splitlines() if "Status: fine" in line]
    assert len(found) == 6
    assert all(line.startswith(("      ", "Health:   ")) for line in found)
