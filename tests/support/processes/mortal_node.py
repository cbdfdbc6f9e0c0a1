"""A node on real processes, whose agent, shims and monitors can be killed one by one."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import psutil
import pytest

from podstatus.agent.compose.runtime import cgroups_name
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.cgroups.discovery import CgroupsUnavailableError, find_cgroups
from podstatus.runtime.process.records.layout import ContainerFolder, PodFolder
from podstatus.runtime.process.records.models import (
    ExitRecord,
    LaunchRecord,
    ProcessIdentity,
    ShimRecord,
    StartRecord,
)
from tests.support.processes.agent_process import (
    NODE,
    SECONDS,
    AgentProcess,
    Cluster,
    Document,
    container,
    run_command,
    until,
    words_of,
)
from tests.support.processes.api_servers import Server
from tests.support.processes.process_runtime import need_bubblewrap

T = TypeVar("T")

ISOLATIONS = (pytest.param("bubblewrap", marks=need_bubblewrap), "none")

TALKER = """
trap 'for number in $(seq 500); do echo "line $number"; done; exit 7' USR1
trap 'exit 0' TERM
echo begin
sleep 1000 & wait
"""
"""Says something and ends with 7 when it is told to."""

DAEMON = """
(setsid sh -c 'trap "" TERM HUP INT USR1; echo daemon; exec sleep "$0" > /dev/null 2>&1' "$0" &)
trap 'exit 0' TERM
sleep 1000 & wait
"""
"""A command with a daemon of the second fork that ignores what it can, and is found by how long
it sleeps."""


class MortalNode(AgentProcess):
    """The agent with the process runtime, and all that belongs to it on this machine."""

    def __init__(self, folder: Path, isolation: str, *options: str, **more: Any) -> None:
        options = ("--runtime", "process", "--isolation", isolation, "--no-samples", *options)
        super().__init__(folder, *options, **more)
        self.runtime_dir = self.root_dir / "runtime"

    def pod_folder(self, pod: Document) -> PodFolder:
        return PodFolder(self.runtime_dir, PodUID(pod["metadata"]["uid"]))

    def attempt(self, pod: Document) -> "AttemptOnDisk":
        """The attempt that the status of its only container shows."""
        name = container(pod)["containerID"].removeprefix("process://")
        return AttemptOnDisk(self.pod_folder(pod).container(name))

    def attempts(self, pod: Document) -> list["AttemptOnDisk"]:
        """All that are on the disk, the oldest first."""
        found = map(AttemptOnDisk, map(ContainerFolder, self.pod_folder(pod).containers.iterdir()))
        return sorted(found, key=lambda attempt: attempt.launch.created_at)

    def shim(self, pod: Document) -> ProcessIdentity:
        return read(self.pod_folder(pod).shim, ShimRecord).process

    def shims(self) -> list[psutil.Process]:
        """All of this node, also those that it should not have any more."""
        found = processes_with("shim_program.py", str(self.runtime_dir))
        return [process for process in found if _name(process) == "podstatus-shim"]

    def family_of(self, pod: Document) -> list[psutil.Process]:
        """All processes of a pod: its shim and what that has started."""
        shim = psutil.Process(self.shim(pod).pid)
        return [shim, *shim.children(recursive=True)]

    def kill_all(self) -> None:
        """The agent, and whatever it and those before it have started, with their cgroups."""
        self.kill()
        end_family(processes_with("shim_program.py", str(self.runtime_dir)))
        with suppress(CgroupsUnavailableError):
            cgroups = find_cgroups(cgroups_name(self.node, self.root_dir))
            cgroups.retain_only([])
            cgroups.close()

    def container_logs(self, pod: Document, query: str = "") -> str:
        """What the agent's own port answers."""
        where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        return self.ask_text(f"/containerLogs/{where}/{container(pod)['name']}{query}")

    def logs_command(self, pod: Document, *options: str) -> str:
        """What `podstatus logs` prints."""
        meta = pod["metadata"]
        where = ("-n", meta["namespace"], "--root-dir", str(self.root_dir))
        done = run_command("logs", meta["name"], *where, *options)
        assert done.returncode == 0, done.stderr
        return done.stdout


class AttemptOnDisk:
    """What agent and shim tell each other of an attempt."""

    def __init__(self, place: ContainerFolder) -> None:
        self.place = place

    @property
    def launch(self) -> LaunchRecord:
        return read(self.place.launch, LaunchRecord)

    @property
    def started(self) -> StartRecord:
        return read(self.place.started, StartRecord)

    def send(self, number: int) -> None:
        """A signal to the command."""
        os.kill(self.started.process.pid, number)

    def wait_for_exit(self) -> ExitRecord:
        until(self.place.exit.exists, lambda: list(self.place.path.iterdir()))
        return read(self.place.exit, ExitRecord)

    def wait_for_text(self, text: str) -> None:
        until(lambda: self.place.log.exists() and text in self.place.log.read_text())


def read(path: Path, kind: type[T]) -> T:
    return msgspec.json.decode(path.read_bytes(), type=kind)


@contextmanager
def mortal_node(
    folder: Path, isolation: str, *options: str, server: Server | None = None, node: str = NODE
) -> Iterator[MortalNode]:
    """A node, not started yet; on this server, or on one of its own. Ended at the end."""
    kubeconfig = None
    if server is not None:
        kubeconfig = server.node_access(node).kubeconfig
        options = (*options, "--register-with-taints", "")
    made = MortalNode(folder, isolation, *options, kubeconfig=kubeconfig, node=node)
    try:
        yield made
    finally:
        made.kill_all()
        if server is not None:
            server.forget_node(node)


@contextmanager
def ready_node(
    server: Server, folder: Path, isolation: str, node: str
) -> Iterator[tuple[MortalNode, Cluster]]:
    """A node that is Ready on this server, and a new namespace for its pods."""
    cluster = Cluster(server.access, node, server.new_namespace())
    with mortal_node(folder, isolation, server=server, node=node) as made:
        made.start()
        made.wait_ready(cluster)
        yield made, cluster


def end_family(processes: list[psutil.Process]) -> None:
    """End these with all that they started."""
    family = list(processes)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            family += process.children(recursive=True)
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(family, SECONDS)


def processes_with(*words: str) -> list[psutil.Process]:
    """The processes that have all of these in their command lines, and are no mere remains."""
    found = []
    for process in psutil.process_iter():
        line = "\0".join(words_of(process))
        if all(word in line for word in words):
            found.append(process)
    return found


def commands(name: str, *words: str) -> list[psutil.Process]:
    """The processes of a command with these words; not those that lead to it."""
    found = processes_with(name, *words)
    return [process for process in found if words_of(process)[:1] == [name]]


def is_alive(process: psutil.Process) -> bool:
    """Whether it is there and no mere remains; it may end while we look."""
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _name(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return str(process.name())
    return ""


def pod_of(name: str, *command: str, node: str = "", **spec: Any) -> Document:
    """A pod of one container that runs a command."""
    more = {"nodeName": node} if node else {}
    containers = [{"name": "app", "image": "busybox", "command": list(command)}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 3, "containers": containers, **more, **spec},
    }


def events_about(cluster: Cluster, pod: Document) -> Counter[str]:
    """How often the agent has told what about a pod."""
    found: Counter[str] = Counter()
    for event in cluster.events():
        is_ours = event.get("source", {}).get("component") == "kubelet"
        if is_ours and event["involvedObject"].get("uid") == pod["metadata"]["uid"]:
            found[event["reason"]] += event.get("count") or 1
    return found


def starts(number: int, **others: int) -> Counter[str]:
    """What is told of so many starts of a container, and what else."""
    return Counter({"Pulled": number, "Created": number, "Started": number, **others})
