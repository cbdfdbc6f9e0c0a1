"""Where a campaign plays: an API server, the network to it, an agent on it, and its disk."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any

import yaml

from podstatus.testing.servers.access import ServerAccess
from podstatus.testing.servers.free_port import free_port
from tests.soak.proxy import Proxy
from tests.support.processes import skewed_agent
from tests.support.processes.agent_process import ENVIRONMENT, Document
from tests.support.processes.api_servers import Client
from tests.support.processes.mortal_node import MortalNode
from tests.support.processes.programs import COMMAND

NODE = "soak"
DISK_MEGABYTES = 96
_SECONDS = 90.0


class ServerProcess:
    """`podstatus apiserver` on a folder and a port of its own, and the campaign's way to it."""

    def __init__(self, folder: Path, log: Path) -> None:
        self.folder = folder
        self._log = log
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._client: Client | None = None

    def start(self) -> None:
        """Serve; come back once it does."""
        where = ("--root-dir", str(self.folder), "--port", str(self.port), "--faults")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*COMMAND, "apiserver", *where], stdout=log, stderr=log, env=ENVIRONMENT
            )
        deadline = time.monotonic() + _SECONDS
        while not self._is_up():
            assert self._process.poll() is None, f"the API server ended; see {self._log}"
            assert time.monotonic() < deadline, f"the API server does not answer; see {self._log}"
            time.sleep(0.05)

    def send(self, number: int) -> None:
        """A signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._client is not None:
            self._client.close()

    @property
    def access(self) -> ServerAccess:
        return ServerAccess(self.folder)

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        """Code and body of the answer; 0 if there was none."""
        try:
            self._client = self._client or Client(self.access)
            return self._client.ask(method, path, body, **more)
        except (OSError, HTTPException) as error:
            return 0, str(error)

    def pods(self) -> list[Document] | None:
        """All of them; None if there was no answer."""
        code, found = self.ask("GET", "/api/v1/pods")
        return list(found["items"]) if code == 200 else None

    def _is_up(self) -> bool:
        return self.folder.joinpath("endpoints.json").exists() and self.ask("GET", "/readyz")[0] > 0


class SoakNode(MortalNode):
    """The agent, with a clock that can be set."""

    def __init__(self, folder: Path, isolation: str, clock: Path, *options: str, **more: Any):
        super().__init__(folder, isolation, *options, **more)
        program = [sys.executable, skewed_agent.__file__, str(clock)]
        self.words = [*program, *self.words[len(COMMAND) :]]

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def send(self, number: int) -> None:
        """A signal."""
        assert self.process is not None
        self.process.send_signal(number)


class Stage:
    """All of it, in one folder."""

    def __init__(self, folder: Path, isolation: str) -> None:
        self.folder = folder
        self.isolation = isolation
        self.truth = _made(folder / "truth")
        self.manifests = _made(folder / "manifests")
        self.clock = folder / "clock"
        skewed_agent.set_offset(self.clock, 0)
        self.server = ServerProcess(_made(folder / "server"), folder / "server.log")
        self.server.start()
        access = self.server.access
        self.proxy = Proxy(self.server.port, access.authority, access.token)
        self.proxy.start()
        self.node = SoakNode(
            *(_made(folder / "node"), isolation, self.clock),
            *("--register-with-taints", "", "--max-container-restart-period", "4s"),
            *("--pod-manifest-path", str(self.manifests), "--file-check-frequency", "2s"),
            *("--eviction-hard", "memory.available<1Mi"),
            # On a busy machine many deleted pods are still terminating: not what is tested here.
            *("--max-pods", "1000"),
            kubeconfig=self._kubeconfig(),
            node=NODE,
        )
        self.has_own_disk = self._mount()

    @property
    def name(self) -> str:
        """That no other stage has."""
        return self.folder.name.rpartition("-")[2]

    def pod_folders(self) -> list[Path]:
        """Those of the runtime, in the order of their names."""
        try:
            return sorted((self.node.runtime_dir / "pods").iterdir())
        except FileNotFoundError:  # the agent has not made it yet
            return []

    def fill_disk(self) -> None:
        """Leave no byte on the disk of the agent."""
        with (self.node.root_dir / "full").open("wb", buffering=0) as file:
            block = b"x" * 65536
            try:
                while True:
                    file.write(block)
            except OSError:
                return

    def empty_disk(self) -> None:
        """Let there be room again."""
        (self.node.root_dir / "full").unlink(missing_ok=True)

    def close(self, *, keep: bool) -> None:
        """End everything that was started; keep what lies on the agent's own disk, or not."""
        for process in (self.node, self.server):
            if process is self.server or self.node.is_running:
                with _harmless():
                    process.send(signal.SIGCONT)
        self.node.kill_all()
        self.server.kill()
        self.proxy.stop()
        for words in Path("/tmp").glob(f"soak-*-{self.name}-*"):  # noqa: S108 - of pods not isolated
            words.unlink(missing_ok=True)
        if keep:
            self.empty_disk()
            _copy(self.node.root_dir, self.folder / "root-dir")
        if self.has_own_disk:
            subprocess.run([_found("umount"), "-l", str(self.node.root_dir)], check=False)

    def _kubeconfig(self) -> Path:
        """That of the server, by way of the proxy."""
        told = yaml.safe_load(self.server.access.kubeconfig.read_text())
        told["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self.proxy.port}"}
        path = self.folder / "kubeconfig"
        path.write_text(yaml.safe_dump(told))
        return path

    def _mount(self) -> bool:
        """Give the agent a small disk of its own; whether that works."""
        root = _made(self.node.root_dir)
        size = f"size={DISK_MEGABYTES}m,mode=0700"
        mounting = [_found("mount"), "-t", "tmpfs", "-o", size, "podstatus-soak", str(root)]
        done = subprocess.run(mounting, check=False, capture_output=True)
        return done.returncode == 0


@contextmanager
def stage(isolation: str, *, keep: list[bool]) -> Iterator[Stage]:
    """A stage; ended at the end, and its files removed unless somebody has put True into `keep`."""
    # Not below /tmp: that is a sandbox's own.
    parent = "/var/lib" if os.access("/var/lib", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="podstatus-soak-", dir=parent))
    folder.chmod(0o755)
    with ExitStack() as stack:
        for number in (signal.SIGINT, signal.SIGTERM):
            stack.callback(signal.signal, number, signal.getsignal(number))
        made = Stage(folder, isolation)
        stack.callback(lambda: None if any(keep) else shutil.rmtree(folder, ignore_errors=True))
        stack.callback(lambda: made.close(keep=any(keep)))
        stack.enter_context(_undisturbed_end())
        yield made


def _copy(folder: Path, to: Path) -> None:
    """All but pipes: who copies one waits for somebody to write."""

    def pipes(where: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(where, name).is_fifo()]

    shutil.copytree(folder, to, symlinks=True, ignore=pipes)


@contextmanager
def _undisturbed_end() -> Iterator[None]:
    """Who is impatient must not keep us from ending what we started."""
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def _harmless() -> Iterator[None]:
    try:
        yield
    except (AssertionError, ProcessLookupError):
        return


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _found(program: str) -> str:
    return shutil.which(program) or program
