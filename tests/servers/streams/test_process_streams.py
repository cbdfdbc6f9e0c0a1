"""`kubectl logs`, `exec` and `attach` of real processes, with all that is between as it ships.

That is an API server, the agent as a process, a shim. On the real server the agent is the user of
its node, and asks by SubjectAccessReview and TokenReview who may ask it.
"""

import signal
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import msgspec
import pytest

from podstatus.base.net.sockets import shutdown_sockets, transport_socket
from podstatus.kube.encoding.channel_frames import PROTOCOLS, UNNAMED, decode_frame
from podstatus.runtime.process.records.models import ShimRecord
from podstatus.runtime.process.state.process_identity import send_signal
from tests.support.processes.agent_process import (
    SECONDS,
    AgentProcess,
    Cluster,
    Document,
    agent,
    container,
    until,
)
from tests.support.processes.api_servers import NODES, RealServer, Server
from tests.support.processes.kubectl import HOW_TO_GET_IT, KUBECTL, Kubectl
from tests.support.processes.process_node import command_pod, pod_of
from tests.support.web.aiohttp_transport import transport_of

pytestmark = [
    pytest.mark.skipif(KUBECTL is None, reason=HOW_TO_GET_IT),
    pytest.mark.usefixtures("started"),
]

NODE = NODES[16]
SHELL = "/bin/sh"
COUNTS = 'echo "in $0"; echo problem >&2; exec sleep 600'
OWN = "/tmp/own"  # noqa: S108 - in the container
FAILS_ONCE = f"test -e {OWN}/again && exec sleep 600; touch {OWN}/again; echo first; exit 3"


@pytest.fixture(scope="module")
def started(
    each_server: Server, node_certificates: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AgentProcess]:
    """The agent of one node of the server, for all tests of this file."""
    access = each_server.access
    mine = each_server.node_access(NODE)
    options = (
        *("--runtime", "process", "--register-with-taints", "", "--node-ip", "127.0.0.1"),
        *("--tls-cert-file", str(node_certificates / "server.crt")),
        *("--tls-private-key-file", str(node_certificates / "server.key")),
        *("--client-ca-file", str(access.authority)),
    )
    folder = tmp_path_factory.mktemp("streams")
    with agent(folder, *options, kubeconfig=mine.kubeconfig, node=NODE) as node, _no_shims(node):
        node.start()
        node.wait_ready(Cluster(access, NODE))
        yield node
    each_server.client.delete(f"/api/v1/nodes/{NODE}")


@contextmanager
def _no_shims(node: AgentProcess) -> Iterator[None]:
    """Pods outlive their agent: leave none behind."""
    try:
        yield
    finally:
        for record in node.root_dir.glob("runtime/pods/*/shim.json"):
            with suppress(OSError, msgspec.DecodeError):
                shim = msgspec.json.decode(record.read_bytes(), type=ShimRecord)
                send_signal(shim.process, signal.SIGKILL)


@pytest.fixture
def cluster(server: Server, namespace: str) -> Iterator[Cluster]:
    """The namespace of a test, whose pods are gone at its end."""
    found = Cluster(server.access, NODE, namespace)
    yield found
    names = [
        pod["metadata"]["name"] for pod in found.pods() if pod["metadata"]["namespace"] == namespace
    ]
    for name in names:
        found.delete(name)
    for name in names:
        found.wait_gone(name)


@pytest.fixture
def kubectl(cluster: Cluster, tmp_path: Path) -> Kubectl:
    made = Kubectl(cluster.access, tmp_path)
    made.command.append(f"--namespace={cluster.namespace}")
    return made


def add(cluster: Cluster, pod: Document) -> None:
    """Have a pod on our node, and wait until it is Ready."""
    # What is process 1 and has no handler does not hear a SIGTERM: nobody waits for long.
    pod["spec"] |= {"nodeName": NODE, "terminationGracePeriodSeconds": 1}
    cluster.create(pod)
    cluster.wait_ready(pod["metadata"]["name"])


async def exec_messages(cluster: Cluster, pod: str, protocol: str, *command: str) -> list[bytes]:
    """Run a command in a pod; return all messages of the WebSocket."""
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/{pod}/exec"
    query = urlencode([("stdout", "1"), *(("command", word) for word in command)])
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(
            f"{cluster.access.url}{path}?{query}",
            headers={"Authorization": f"Bearer {cluster.access.token}"},
            protocols=(protocol,) if protocol else (),
            ssl=ssl.create_default_context(cafile=cluster.access.authority),
        ) as socket,
    ):
        assert (socket.protocol or "") == protocol
        connection = transport_socket(transport_of(socket))
        messages = [decode_frame(frame.data, protocol) async for frame in socket]
        await shutdown_sockets([connection])
    return messages


async def test_exec_speaks_every_protocol_of_the_kubelet(cluster: Cluster) -> None:
    add(cluster, command_pod("web", SHELL, "-c", "exec sleep 600"))
    for protocol in (*PROTOCOLS, UNNAMED):
        command = (SHELL, "-c", "echo hello; exit 3")
        messages = await exec_messages(cluster, "web", protocol, *command)
        assert b"".join(message[1:] for message in messages if message[0] == 1) == b"hello\n"
        assert b"command terminated with non-zero exit code" in messages[-1]
        assert messages[-1].startswith(b"\x03{") == protocol.startswith("v")


def test_logs_are_what_each_container_wrote(kubectl: Kubectl, cluster: Cluster) -> None:
    containers = [{"name": name, "command": [SHELL, "-c", COUNTS, name]} for name in ("a", "b")]
    add(cluster, pod_of("web", *containers))
    # Who is Ready has begun, and may have said nothing yet.
    until(lambda: kubectl("logs", "web", "-c", "b").count("\n") == 2)
    assert sorted(kubectl("logs", "web", "-c", "b").splitlines()) == ["in b", "problem"]
    until(lambda: kubectl("logs", "web", "-c", "a").count("\n") == 2)
    said = kubectl("logs", "web", "--all-containers", "--prefix", "--tail=2")
    assert {"[pod/web/a] in a", "[pod/web/b] in b"} <= set(said.splitlines())
    ran = kubectl.run("logs", "web", "-c", "c")
    assert (ran.code, "container c is not valid for pod web" in ran.errors) == (1, True)


def test_logs_are_followed_to_their_end(kubectl: Kubectl, cluster: Cluster) -> None:
    script = "echo one; read line; echo $line; exit 0"
    reads = {"stdin": True}
    add(cluster, command_pod("web", SHELL, "-c", script, container=reads, restartPolicy="Never"))
    with kubectl.running("logs", "-f", "web") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"
        kubectl.run("attach", "-i", "web", input="two\n")
        assert process.stdout.read() == "two\n"
        assert process.wait(SECONDS) == 0


def test_logs_of_the_attempt_before(kubectl: Kubectl, cluster: Cluster) -> None:
    own = {"volumeMounts": [{"name": "own", "mountPath": OWN}]}
    volumes = [{"name": "own", "emptyDir": {}}]
    pod = command_pod("web", SHELL, "-c", FAILS_ONCE, container=own, volumes=volumes)
    add(cluster, pod)
    cluster.wait_for("web", lambda pod: container(pod)["restartCount"] == 1)
    assert kubectl("logs", "--previous", "web") == "first\n"
    assert kubectl("logs", "web") == ""


def test_exec_has_input_output_and_an_end(kubectl: Kubectl, cluster: Cluster) -> None:
    add(cluster, command_pod("web", "sleep", "600"))
    text = "some\nmore\n" * 50_000
    assert kubectl("exec", "-i", "web", "--", "cat", input=text) == text
    assert kubectl("exec", "web", "--", "echo", "a  b", "$c", "'") == "a  b $c '\n"
    ran = kubectl.run("exec", "web", "--", SHELL, "-c", "echo no >&2; exit 7")
    assert (ran.code, ran.out) == (7, "")
    assert ran.errors == "no\ncommand terminated with exit code 7\n"


def test_exec_of_what_is_not_there_says_so(kubectl: Kubectl, cluster: Cluster) -> None:
    add(cluster, command_pod("web", "sleep", "600"))
    ran = kubectl.run("exec", "web", "--", "/no/such/program")
    assert (ran.code, "/no/such/program" in ran.errors) == (1, True)


def test_who_may_ask_the_node_itself_is_for_the_server_to_say(
    server: Server, cluster: Cluster, started: AgentProcess, node_certificates: Path
) -> None:
    add(cluster, command_pod("web", SHELL, "-c", COUNTS, "web"))
    place = f"/containerLogs/{cluster.namespace}/web/app"

    def ask(token: str, path: str = place) -> tuple[int, str]:
        request = urllib.request.Request(  # noqa: S310 - ours
            started.wait_serving()["agent"] + path, headers={"Authorization": f"Bearer {token}"}
        )
        context = ssl.create_default_context(cafile=str(node_certificates / "ca.crt"))
        try:
            with urllib.request.urlopen(request, context=context, timeout=90) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    until(lambda: "in web" in ask(server.access.token)[1])
    assert ask("x" * 40) == (401, "Unauthorized\n")
    if isinstance(server, RealServer):
        code, told = ask(server.node_access(NODES[1]).token)
        assert (code, f"user=system:node:{NODES[1]}, verb=get" in told) == (403, True)
