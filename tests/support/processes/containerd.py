"""A containerd of its own for tests: its folders, socket, images and CNI are below one folder.

    with Containerd(folder, find_parts()) as containerd:
        runtime = ... containerd.endpoint

When it is left, the pods that are still there are killed, and nothing is left of them.
"""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tools.containerd_parts import cache_dir

from podstatus.runtime.cri.client.channel import CriChannel
from podstatus.runtime.cri.client.errors import CriCallError
from podstatus.runtime.cri.client.runtime_service import RuntimeService
from podstatus.testing.servers.etcd import start_program, wait_until_ready
from podstatus.testing.servers.guarded_process import GuardedProcess
from tests.support.processes.oci_images import busybox_layer, write_archive

PAUSE, BUSYBOX, NO_COMMAND, AS_USER = (
    f"localhost/{name}:1" for name in ("pause", "busybox", "no-command", "as-user")
)
IMAGES: Mapping[str, Mapping[str, Any]] = {
    PAUSE: {"Entrypoint": ["/bin/sleep", "infinity"]},
    BUSYBOX: {"Entrypoint": ["/bin/sh", "-c"], "Cmd": ["echo up; sleep 600"]},
    NO_COMMAND: {},
    AS_USER: {"Entrypoint": ["/bin/sh", "-c"], "User": "user", "WorkingDir": "/work"},
}
_START_SECONDS = 60.0
_NAMESPACE = "k8s.io"
_CONFIG = """
version = 2
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp",
]
[grpc]
  address = "{socket}"
[ttrpc]
  address = "{socket}.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{parts}/usr/lib/cni"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{runc}"
"""
_CNI = """
{{
  "cniVersion": "0.4.0",
  "name": "test",
  "plugins": [
    {{
      "type": "ptp",
      "ipam": {{
        "type": "host-local", "dataDir": "{folder}/ipam", "ranges": [[{{ "subnet": "{subnet}" }}]]
      }}
    }}
  ]
}}
"""
"""A pair of network interfaces per pod, which need neither a bridge nor a packet filter."""


class MissingPartsError(Exception):
    """containerd was not found or cannot run here; the message says what to do."""


def find_parts() -> Path:
    """Return the folder with the unpacked packages. Raises MissingPartsError."""
    if os.geteuid() != 0:
        raise MissingPartsError("containerd needs root: sudo make test-cri")
    complete = [path for path in cache_dir().glob("*") if (path / "usr/bin/containerd").exists()]
    if not complete:
        raise MissingPartsError("there is no containerd: make test-cri fetches it once")
    return max(complete, key=lambda path: path.stat().st_mtime_ns)


async def _remove_all(endpoint: str) -> None:
    channel = CriChannel(endpoint)
    runtime = RuntimeService(channel, request_seconds=30.0)
    try:
        while sandboxes := await runtime.list_pod_sandboxes():
            for sandbox in sandboxes:
                # What an agent that was killed had begun is still under way.
                with suppress(CriCallError):
                    await runtime.stop_pod_sandbox(sandbox.id)
                    await runtime.remove_pod_sandbox(sandbox.id)
    finally:
        await channel.close()


class Containerd:
    """A containerd process; what it runs outlives a restart."""

    def __init__(self, folder: Path, parts: Path) -> None:
        self._folder = folder
        self._parts = parts
        self._socket = folder / "c.sock"
        self._process: GuardedProcess | None = None

    @property
    def endpoint(self) -> str:
        return f"unix://{self._socket}"

    def __enter__(self) -> Self:
        self._write_config()
        self.start()
        archive = self._folder / "images.tar"
        write_archive(archive, busybox_layer(self._parts / "bin/busybox"), IMAGES)
        self.ctr("images", "import", "--digests", str(archive))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.start()
        self.kill_everything()
        self.end(signal.SIGTERM)
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            if line.split()[1].startswith(f"{self._folder}/"):
                subprocess.run(["/bin/umount", "-l", line.split()[1]], check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start it with what the previous process left, if it does not run."""
        if self._process is not None and self._process.running:
            return
        path = f"{self._parts}/usr/bin:{self._parts}/usr/sbin:{os.environ['PATH']}"
        command = [f"{self._parts}/usr/bin/containerd", "-c", f"{self._folder}/config.toml"]
        self._process = start_program(
            ["env", f"PATH={path}", *command], self._folder / "containerd.log"
        )
        wait_until_ready(self._is_ready, self._process, "containerd", _START_SECONDS)

    def end(self, number: int) -> None:
        """Stop the process with this signal; containers keep running."""
        if self._process is not None:
            self._process.end(number)

    def pause(self) -> None:
        """Let it hang, until `resume`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def ctr(self, *arguments: str) -> str:
        """Run containerd's command line client."""
        command = [f"{self._parts}/usr/bin/ctr", "-a", str(self._socket), "-n", _NAMESPACE]
        done = subprocess.run(
            [*command, *arguments], check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout

    def tasks(self) -> list[str]:
        """Return the IDs of all containers and sandboxes that have a process."""
        return self.ctr("tasks", "ls", "-q").split()

    def kill_everything(self) -> None:
        """Kill and remove all containers and sandboxes."""
        asyncio.run(_remove_all(self.endpoint))

    def _is_ready(self) -> bool:
        try:
            return "ok" in self.ctr("plugins", "ls")
        except subprocess.SubprocessError:
            return False

    def _write_config(self) -> None:
        (self._folder / "cni").mkdir(parents=True)
        text = _CONFIG.format(
            folder=self._folder,
            socket=self._socket,
            parts=self._parts,
            pause=PAUSE,
            runc=f"{self._parts}/usr/sbin/runc",
            snapshotter="overlayfs",
        )
        (self._folder / "config.toml").write_text(text)
        (self._folder / "cni/10-test.conflist").write_text(
            _CNI.format(folder=self._folder, subnet=f"10.213.{os.getpid() % 256}.0/24")
        )
