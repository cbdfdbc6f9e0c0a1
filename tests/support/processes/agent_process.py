"""The agent as a process: `podstatus run`, on an API server of its own or on one that runs."""

import json
import os
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import psutil

from podstatus.testing.servers.access import ServerAccess
from tests.support.processes.api_servers import Server, get_kept
from tests.support.processes.programs import COMMAND

Document = dict[str, Any]
Found = TypeVar("Found")

NODE = "node-e"
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "TERM": ""}
"""No surprises from the settings of whoever runs the tests."""
SECONDS = 120.0
"""For what takes one or two: the machine has other things to do."""


def until(look: Callable[[], Found | None], told: Callable[[], object] = str) -> Found:
    """What is there once it is, asked again and again. Fails with what is told."""
    deadline = time.monotonic() + SECONDS
    while True:
        # A server that is about to end or to come up.
        with suppress(OSError, HTTPException):
            if found := look():
                return found
        assert time.monotonic() < deadline, told()
        time.sleep(0.05)


class Cluster:
    """What an API server shows, to those who wait for something."""

    def __init__(self, access: ServerAccess, node: str = NODE, namespace: str = "default") -> None:
        self.access = access
        self.node_name = node
        self.namespace = namespace

    def create(self, *pods: Document) -> None:
        for body in pods:
            code, answer = self.access.request("POST", self._path("pods"), body)
            assert code == 201, answer

    def delete(self, name: str) -> None:
        code, answer = self.access.request("DELETE", self._path(f"pods/{name}"))
        assert code == 200, answer

    def pod(self, name: str) -> Document | None:
        code, found = get_kept(self.access, self._path(f"pods/{name}"))
        return found if code == 200 else None

    def pods(self) -> list[Document]:
        return self._items("/api/v1/pods")

    def events(self) -> list[Document]:
        """About what is in our namespace or in none: others have pods of the same names."""
        found = []
        for namespace in {self.namespace, "default"}:
            found += self._items(f"/api/v1/namespaces/{namespace}/events")
        ours = (self.namespace, "", None)
        return [event for event in found if event["involvedObject"].get("namespace") in ours]

    def node(self) -> Document | None:
        code, found = get_kept(self.access, f"/api/v1/nodes/{self.node_name}")
        return found if code == 200 else None

    def renewed(self) -> str:
        """When the lease of the node was renewed."""
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        code, lease = get_kept(self.access, f"{leases}/{self.node_name}")
        return str(lease["spec"]["renewTime"]) if code == 200 else ""

    def is_ready(self) -> bool:
        """Whether the node is."""
        node = self.node()
        return node is not None and condition(node, "Ready").get("status") == "True"

    def wait_ready(self, *names: str) -> list[Document]:
        """The pods of these names, once all of them are Ready."""
        return [self.wait_for(name, is_ready) for name in names]

    def wait_for(self, name: str, is_right: Callable[[Document], object]) -> Document:
        """The pod, once it is right."""

        def look() -> Document | None:
            found = self.pod(name)
            return found if found is not None and is_right(found) else None

        return until(look, lambda: self.pod(name))

    def wait_gone(self, name: str) -> None:
        until(lambda: self.pod(name) is None, lambda: self.pod(name))

    def wait_for_event(self, reason: str, name: str, text: str = "") -> Document:
        """The event about an object of this name, once there is one that has this text."""

        def look() -> Document | None:
            return next((e for e in self.events() if _is_about(e, reason, name, text)), None)

        return until(look, lambda: [(e.get("reason"), e.get("message")) for e in self.events()])

    def _items(self, path: str) -> list[Document]:
        code, found = get_kept(self.access, path)
        assert code == 200, found
        return list(found["items"])

    def _path(self, rest: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/{rest}"


class AgentProcess:
    """`podstatus run`, on the simulated runtime unless told otherwise, in a folder of its own."""

    def __init__(
        self, folder: Path, *options: str, kubeconfig: Path | None = None, node: str = NODE
    ) -> None:
        """Without a kubeconfig it has an API server of its own."""
        self.folder = folder
        self.node = node
        self.root_dir = folder / "root"
        folder.mkdir(exist_ok=True)
        self.log_file = folder / "agent.log"
        server = ("--kubeconfig", str(kubeconfig)) if kubeconfig else ()
        runtime = () if "--runtime" in options else ("--runtime", "simulated")
        self.words = [
            *(*COMMAND, "run", "--root-dir", str(self.root_dir), "--port", "0", *server, *runtime),
            *("--hostname-override", node, "--node-capacity", "cpu=2", *options),
        ]
        self.process: subprocess.Popen[bytes] | None = None
        self.environment = ENVIRONMENT

    @property
    def cluster(self) -> Cluster:
        """What its own API server shows."""
        return Cluster(ServerAccess(self.root_dir / "apiserver"), self.node)

    def start(self) -> None:
        """Start it, and do not wait."""
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self.words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment
            )

    def start_ready(self) -> Cluster:
        """Start it; what its own API server shows, once its Node is Ready."""
        self.start()
        self.wait_serving()
        self.wait_ready(self.cluster)
        return self.cluster

    def wait_ready(self, cluster: Cluster) -> None:
        """Come back when its Node is Ready. Fails with what it had to say."""
        until(lambda: self._is_alive() and cluster.is_ready(), self.log)

    def wait_serving(self) -> Document:
        """What it tells in `endpoints.json`, once it does."""

        def look() -> Document | None:
            self._is_alive()
            told = self.endpoints()
            # A killed one has left its own there. To look for our family takes long.
            pid = told.get("pid", -1)
            is_ours = self.process is not None and pid == self.process.pid
            if is_ours or (psutil.pid_exists(pid) and pid in [it.pid for it in self.family()]):
                return told
            return None

        return until(look, self.log)

    def endpoints(self) -> Document:
        """What is told in `endpoints.json`; nothing if it is not there."""
        with suppress(FileNotFoundError):
            told: Document = json.loads((self.root_dir / "endpoints.json").read_bytes())
            return told
        return {}

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it in peace; its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Its exit code."""
        assert self.process is not None
        return self.process.wait(SECONDS)

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def family(self) -> list[psutil.Process]:
        """It and all processes that it has started."""
        assert self.process is not None
        itself = psutil.Process(self.process.pid)
        return [itself, *itself.children(recursive=True)]

    def server(self) -> psutil.Process:
        """Its own API server."""
        (found,) = (it for it in self.family() if "apiserver" in words_of(it))
        return found

    def health(self, check: str = "") -> tuple[int, str]:
        """What its `/healthz` answers."""
        return get_plain(f"{self.wait_serving()['health']}/healthz{check}")

    def ask(self, path: str) -> Document:
        """What its own port answers to its owner."""
        found: Document = json.loads(self.ask_text(path))
        return found

    def ask_text(self, path: str) -> str:
        """The same, if it is no JSON. Raises OSError if it is refused."""
        code, text = self.ask_plain(path)
        if code != 200:
            raise OSError(f"{path}: {code} {text}")
        return text

    def ask_plain(self, path: str, token: str | None = None) -> tuple[int, str]:
        """Code and text, for one who has this token; its own if it is None."""
        told = self.wait_serving()
        token = told["token"] if token is None else token
        where = urlsplit(told["agent"])
        trust = ssl.create_default_context(cafile=told["agent_certificate"])
        host = where.hostname or ""
        with closing(HTTPSConnection(host, where.port, context=trust, timeout=SECONDS)) as asked:
            asked.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            answer = asked.getresponse()
            return answer.status, answer.read().decode()

    def log(self) -> str:
        return self.log_file.read_text()

    def _is_alive(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log()
        return True


@contextmanager
def agent(
    folder: Path, *options: str, kubeconfig: Path | None = None, node: str = NODE
) -> Iterator[AgentProcess]:
    """The agent, not started yet, and ended at the end with all that it started."""
    made = AgentProcess(folder, *options, kubeconfig=kubeconfig, node=node)
    try:
        yield made
    finally:
        family: list[psutil.Process] = []
        if made.process is not None and made.process.poll() is None:
            family = made.family()
        made.kill()
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, SECONDS)


@contextmanager
def agent_on(
    server: Server, folder: Path, node: str, *options: str
) -> Iterator[tuple[AgentProcess, Cluster]]:
    """The agent of a node that is Ready on this server, and a new namespace for its pods."""
    cluster = Cluster(server.access, node, server.new_namespace())
    kubeconfig = server.node_access(node).kubeconfig
    with agent(folder, *options, kubeconfig=kubeconfig, node=node) as started:
        started.start()
        started.wait_ready(cluster)
        yield started, cluster
    server.forget_node(node)


def words_of(process: psutil.Process) -> list[str]:
    """Its command line; nothing if it has ended meanwhile."""
    with suppress(psutil.NoSuchProcess):
        return list(process.cmdline())
    return []


def run_command(
    *words: str, check: bool = False, **more: str
) -> "subprocess.CompletedProcess[str]":
    """Run the `podstatus` command, with more variables in its environment."""
    return subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        text=True,
        env=ENVIRONMENT | more,
        timeout=SECONDS,
        check=check,
    )


def get_alerts(made: AgentProcess) -> dict[str, Document]:
    """What the command says, by rule."""
    words = ("get", "alerts", "-o", "json", "--root-dir", str(made.root_dir))
    told = json.loads(run_command(*words, check=True).stdout)
    return {it["rule"]: it for it in told["alerts"]}


def make_pod(name: str, script: str = "", node: str = "", **spec: Any) -> Document:
    """A pod of one container that does what the script says."""
    annotations = {"podstatus.dev/simulate": script} if script else {}
    containers = [{"name": "app", "image": "busybox"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": containers, **({"nodeName": node} if node else {}), **spec},
    }


def condition(found: Document, kind: str) -> Document:
    """A condition of a pod or a node; empty if it has none of this type."""
    conditions: Iterable[Document] = found.get("status", {}).get("conditions") or ()
    return next((it for it in conditions if it["type"] == kind), {})


def is_ready(pod: Document) -> bool:
    return condition(pod, "Ready").get("status") == "True"


def has_phase(phase: str) -> Callable[[Document], bool]:
    return lambda pod: bool(pod["status"].get("phase") == phase)


def container(pod: Document) -> Document:
    """The status of its only container."""
    (found,) = pod["status"]["containerStatuses"]
    return dict(found)


def get_plain(url: str) -> tuple[int, str]:
    """Code and text of an answer."""
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:  # noqa: S310 - ours
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def _is_about(event: Document, reason: str, name: str, text: str) -> bool:
    return (
        event.get("reason") == reason
        and event["involvedObject"].get("name") == name
        and text in event.get("message", "")
    )
