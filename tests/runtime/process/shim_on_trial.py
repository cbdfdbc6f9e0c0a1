"""A shim as the agent has it, in a pod folder of its own, and containers for it to keep."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process import run_shim
from podstatus.runtime.process.records.layout import ContainerFolder, PodFolder
from podstatus.runtime.process.records.models import (
    ExitRecord,
    LaunchRecord,
    ProcessIdentity,
    ShimRecord,
    StartRecord,
)
from podstatus.runtime.process.state.process_identity import is_alive

PROGRAM = Path(run_shim.__file__)
DEADLINE = 60.0
SANDBOX = "sandbox-1"

T = TypeVar("T")


def wait_for(what: Callable[[], T | None], *, named: str) -> T:
    """What it returns, as soon as that is neither None nor False."""
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        found = what()
        if found is not None and found is not False:
            return found
        time.sleep(0.002)  # between two looks, not instead of one
    raise AssertionError(f"waited {DEADLINE:.0f} s in vain for {named}")


def needs_bubblewrap() -> str:
    """The path of bwrap; without it the test is skipped, but never where all must run."""
    program = shutil.which("bwrap")
    if program is not None:
        return program
    if os.environ.get("CI") == "true":
        pytest.fail("bwrap is missing: apt-get install bubblewrap")
    pytest.skip("needs bwrap: apt-get install bubblewrap")


class Container:
    """An attempt that was launched."""

    def __init__(self, place: ContainerFolder) -> None:
        self.place = place

    def started(self) -> StartRecord:
        return wait_for(lambda: _read(self.place.started, StartRecord), named="started.json")

    def ended(self) -> ExitRecord:
        return wait_for(lambda: _read(self.place.exit, ExitRecord), named="exit.json")

    def kept_until_the_end(self) -> ExitRecord:
        """How it ended; its keeper has ended too."""
        record = self.ended()
        if self.place.started.exists():
            wait_for_end(self.started().keeper)
        return record

    def log(self) -> bytes:
        """All of it, also what was rotated."""
        files = [*sorted(self.place.path.glob("0.log.*")), self.place.log]
        return b"".join(path.read_bytes() for path in files if path.exists())

    def wrote(self, stream: str = "stdout") -> bytes:
        """What it wrote, put together again."""
        wrote = []
        for entry in self.log().split(b"\n")[:-1]:
            _, name, kind, text = entry.split(b" ", 3)
            assert kind in (b"F", b"P"), entry
            if name == stream.encode():
                wrote.append(text + (b"\n" if kind == b"F" else b""))
        return b"".join(wrote)

    def wait_for_text(self, text: bytes, stream: str = "stdout") -> bytes:
        return wait_for(
            lambda: wrote if text in (wrote := self.wrote(stream)) else None, named=repr(text)
        )


class ShimOnTrial:
    """A shim, and what the agent would do with it."""

    def __init__(
        self, root: Path, *, sandbox: str = SANDBOX, starter: tuple[str, ...] = ()
    ) -> None:
        self.folder = PodFolder(root, PodUID("uid-1"))
        self.folder.containers.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.sandbox = sandbox
        self._starter = starter
        self._count = 0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, program: Path = PROGRAM, *, python: str = sys.executable) -> ShimRecord:
        """The shim, once it can be asked."""
        command = [python, "-I", "-S", str(program), str(self.folder.path), self.sandbox]
        with (self.folder.path / "shim.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self._starter, *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        return wait_for(self._ready, named="shim.json")

    def launch(self, *argv: str, **changes: object) -> Container:
        """Ask for a container that runs a command."""
        container = self.write_launch(*argv, **changes)
        self.send(signal.SIGHUP)
        return container

    def write_launch(self, *argv: str, **changes: object) -> Container:
        self._count += 1
        name = f"{self._count:032x}"
        launch = msgspec.structs.replace(
            LaunchRecord(
                id=name,
                container="main",
                restart_count=0,
                sandbox_id=self.sandbox,
                created_at=1,
                image="",
                stop_signal=signal.SIGTERM,
                message_path="",
                message_fallback=False,
                argv=argv,
                env={"PATH": "/usr/bin:/bin", "TRIAL": str(self.folder.path)},
                cwd="/",
                log_max_bytes=10 * 2**20,
                log_max_files=5,
            ),
            **changes,
        )
        place = self.folder.container(name)
        place.path.mkdir(mode=0o700, exist_ok=True)
        beside = place.path / "launch.json.new"
        beside.write_bytes(msgspec.json.encode(launch))
        beside.rename(place.launch)
        return Container(place)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def send(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(DEADLINE)

    def complaints(self) -> list[str]:
        return (self.folder.path / "shim.log").read_text().splitlines()

    def _ready(self) -> ShimRecord | None:
        record = _read(self.folder.shim, ShimRecord)
        return record if record is not None and record.sandbox_id == self.sandbox else None


@contextlib.contextmanager
def shim_on_trial(root: Path) -> Iterator[ShimOnTrial]:
    """A shim that runs; whatever happens, nothing of it is left."""
    shim = ShimOnTrial(root)
    shim.start()
    try:
        yield shim
    finally:
        assert shim.process is not None
        if shim.process.poll() is None:
            shim.process.kill()
        shim.process.wait(DEADLINE)
        wait_for(lambda: not processes_of(root), named="the end of all processes")


def processes_of(root: Path) -> list[str]:
    """Command lines of processes that have this folder's name in them or in their environment."""
    mark = os.fsencode(root)
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal() and int(path.name) != os.getpid():
            with contextlib.suppress(OSError):
                told = (path / "cmdline").read_bytes()
                if mark in told or mark in (path / "environ").read_bytes():
                    found.append(f"{path.name} {told.decode(errors='replace')}")
    return found


def wait_for_end(process: ProcessIdentity) -> None:
    wait_for(lambda: not is_alive(process), named=f"the end of process {process.pid}")


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
