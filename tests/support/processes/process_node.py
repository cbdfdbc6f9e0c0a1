"""`podstatus run --runtime process` as a process, pods with commands for it, and what they say."""

import asyncio
import json
import os
import shutil
import signal
import ssl
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec
import psutil
import pytest

from podstatus.agent.compose.runtime import cgroups_name
from podstatus.base.net.sockets import shutdown_sockets, transport_socket
from podstatus.runtime.process.cgroups.discovery import CgroupsUnavailableError, find_cgroups
from podstatus.runtime.process.paths.safe_paths import remove_tree
from podstatus.runtime.process.records.models import ShimRecord
from podstatus.runtime.process.sandbox.isolation import BubblewrapUnavailableError, find_bubblewrap
from podstatus.runtime.process.state.process_identity import send_signal
from tests.support.processes.agent_process import (
    ENVIRONMENT,
    NODE,
    SECONDS,
    AgentProcess,
    Document,
    until,
)
from tests.support.processes.process_runtime import AS_NOBODY, NOBODY
from tests.support.processes.stand_in_node import ERROR, STDERR, STDOUT, V5
from tests.support.web.aiohttp_transport import transport_of

ISOLATIONS = ("bubblewrap", "none")
PYTHON = "/usr/bin/python3"
"""One that everybody may execute, also inside of a sandbox."""
_REPOSITORY = Path(__file__).parents[3]
_PYTHON_PATH = f"{_REPOSITORY / 'src'}:{sysconfig.get_path('purelib')}"


class ProcessNode(AgentProcess):
    """The agent on the process runtime, as whoever runs the tests or as somebody else."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        isolation: str,
        user: int | None = None,
        path: str = ENVIRONMENT["PATH"],
        node: str = NODE,
    ) -> None:
        chosen = ("--runtime", "process", "--isolation", isolation)
        super().__init__(folder, *chosen, *options, node=node)
        self.environment = {**ENVIRONMENT, "PATH": path}
        if user is not None:
            shutil.chown(folder, user)
            # Whatever PATH the agent is to have.
            switch = shutil.which(AS_NOBODY[0]) or AS_NOBODY[0]
            self.words = [switch, *AS_NOBODY[1:], PYTHON, *self.words[1:]]
            self.environment |= {"PYTHONPATH": _PYTHON_PATH, "HOME": str(folder)}

    def start(self) -> None:
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self.words,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self.environment,
                cwd="/",
            )

    @property
    def pods_folder(self) -> Path:
        """Where the runtime has the folders of pods."""
        return self.root_dir / "runtime/pods"

    def pod_folder(self, name: str) -> Path:
        """Of the pod with this name."""
        pod = self.cluster.pod(name)
        assert pod is not None
        return self.pods_folder / str(pod["metadata"]["uid"])

    def shim(self, name: str) -> ShimRecord:
        """Of the pod with this name."""
        data = (self.pod_folder(name) / "shim.json").read_bytes()
        return msgspec.json.decode(data, type=ShimRecord)

    def shims(self) -> list[ShimRecord]:
        """Of all pods that are on this machine."""
        records = self.pods_folder.glob("*/shim.json")
        return [msgspec.json.decode(it.read_bytes(), type=ShimRecord) for it in records]

    def log_of(self, name: str, container: str = "") -> str:
        """What a container wrote, by way of the API server."""
        query = urlencode({"container": container} if container else {})
        access = self.cluster.access
        connection = access.connect()
        try:
            connection.request(
                "GET",
                f"/api/v1/namespaces/default/pods/{name}/log?{query}",
                headers={"Authorization": f"Bearer {access.token}"},
            )
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
            assert answer.status == 200, text
            return text
        finally:
            connection.close()

    def wait_for_log(self, name: str, text: str, container: str = "") -> str:
        """The log, once it has this text."""

        def look() -> str | None:
            with suppress(AssertionError):  # it is not started yet
                said = self.log_of(name, container)
                return said if text in said else None
            return None

        return until(look, lambda: (self.cluster.pod(name), self.log()))

    def exec(self, name: str, *command: str) -> tuple[str, Document]:
        """What a command in a pod said, and how it ended."""
        return asyncio.run(asyncio.wait_for(self._exec(name, command), SECONDS))

    async def _exec(self, name: str, command: Sequence[str]) -> tuple[str, Document]:
        access = self.cluster.access
        pairs = [*(("command", word) for word in command), ("stdout", "true"), ("stderr", "true")]
        url = f"{access.url}/api/v1/namespaces/default/pods/{name}/exec?{urlencode(pairs)}"
        context = ssl.create_default_context(cafile=access.authority)
        headers = {"Authorization": f"Bearer {access.token}"}
        said: dict[int, bytes] = {STDOUT: b"", STDERR: b"", ERROR: b""}
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(url, headers=headers, protocols=(V5,), ssl=context) as socket,
        ):
            below = transport_socket(transport_of(socket))
            async for message in socket:
                said[message.data[0]] += message.data[1:]
            await socket.close()
            await shutdown_sockets([below])
        return (said[STDOUT] + said[STDERR]).decode(), json.loads(said[ERROR])

    def result(self, name: str) -> Any:
        """What a pod that has run to its end printed last, as JSON."""
        self.cluster.wait_for(name, lambda pod: pod["status"].get("phase") == "Succeeded")
        return json.loads(self.log_of(name).splitlines()[-1])

    def end_all(self) -> None:
        """End it, and all pods that it or one before it has started, with their cgroups."""
        family = self.family() if self.process is not None and self.process.poll() is None else []
        self.kill()
        for record in self.pods_folder.glob("*/shim.json"):
            with suppress(OSError, msgspec.DecodeError):
                shim = msgspec.json.decode(record.read_bytes(), type=ShimRecord)
                send_signal(shim.process, signal.SIGKILL)
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, SECONDS)
        with suppress(CgroupsUnavailableError):
            cgroups = find_cgroups(cgroups_name(self.node, self.root_dir))
            cgroups.retain_only([])
            cgroups.close()


@contextmanager
def process_node(
    *options: str,
    isolation: str,
    user: int | None = None,
    path: str = ENVIRONMENT["PATH"],
    samples: bool = False,
    name: str = NODE,
) -> Iterator[ProcessNode]:
    """The agent, not started yet, and ended at the end with all that it started."""
    if isolation == "bubblewrap":
        need_bubblewrap()
    # Not below /tmp, which every sandbox has for itself: what hides it is to be seen.
    folder = Path(tempfile.mkdtemp(prefix="podstatus-", dir=None if os.geteuid() else "/var/lib"))
    wanted = options if samples else ("--no-samples", *options)
    node = ProcessNode(folder, *wanted, isolation=isolation, user=user, path=path, node=name)
    try:
        yield node
    finally:
        node.end_all()
        until(lambda: _is_removed(folder), lambda: list(folder.rglob("*")))


def need_bubblewrap() -> None:
    """Skip if there is no bubblewrap; in CI there must be one."""
    try:
        find_bubblewrap()
    except BubblewrapUnavailableError as error:
        skip(str(error))


def need_root() -> None:
    """Skip if we are not root; in CI we are."""
    if os.geteuid():
        skip("only root can do this")


def need_nobody() -> int:
    """Skip if nobody else can run the agent; whom it will be."""
    need_root()
    tried = subprocess.run(
        [*AS_NOBODY, PYTHON, "-c", "import podstatus.cli.main"],
        env={"PYTHONPATH": _PYTHON_PATH},
        cwd="/",
        check=False,
        capture_output=True,
        text=True,
    )
    if tried.returncode:
        why = (tried.stderr.splitlines() or ["?"])[-1]
        skip(f"an ordinary user cannot use {_REPOSITORY} with {PYTHON}: {why}")
    return NOBODY


def skip(why: str) -> None:
    """Skip with one line; in CI, which has all that is needed, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


def command_pod(
    name: str, *command: str, container: Document | None = None, **spec: Any
) -> Document:
    """A pod of one container that runs a command."""
    own = {"name": "app", "image": "a", "command": list(command), **(container or {})}
    return pod_of(name, own, **spec)


def pod_of(name: str, *containers: Document, **spec: Any) -> Document:
    """A pod with these containers, which need no name."""
    named = [
        {"name": f"c{number}", "image": "a", **container}
        for number, container in enumerate(containers)
    ]
    grace = {"terminationGracePeriodSeconds": 2, "automountServiceAccountToken": False}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": named, **grace, **spec},
    }


def python_pod(name: str, script: str, *arguments: str, **more: Any) -> Document:
    """A pod that runs a script of Python once."""
    more = {"restartPolicy": "Never", **more}
    return command_pod(name, PYTHON, "-I", "-c", script, *arguments, **more)


def _is_removed(folder: Path) -> bool:
    with suppress(OSError):  # something in it is still ending
        remove_tree(folder)
    return not folder.exists()
