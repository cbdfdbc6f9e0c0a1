"""A shim in its own pod folder, and containers for it to run."""

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
from podstatus.runtime.process import shim_program
from podstatus.runtime.process.records.layout import ContainerFolder, PodFolder
from podstatus.runtime.process.records.models import (
    ExitRecord,
    LaunchRecord,
    ProcessIdentity,
    ShimRecord,
    StartRecord,
)
from podstatus.runtime.process.state.process_identity import is_alive

PROGRAM = Path(shim_program.__file__)
DEADLINE = 60.0
SANDBOX = "sandbox-1"

T = TypeVar("T")


def wait_for(what: Callable[[], T | None], *, named: str) -> T:
    """Return the first result of `what` that is neither None nor False."""
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        result = what()
        if result is not None and result is not False:
            return result
        time.sleep(0.002)  # between two checks
    raise AssertionError(f"waited {DEADLINE:.0f} s in vain for {named}")


def needs_bubblewrap() -> str:
    """Return the path of bwrap; skip the test without it, but fail where all tests must run."""
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

    def wait_for_exit(self) -> ExitRecord:
        """Return the exit record, once the monitor has ended, too."""
        record = self.ended()
        if self.place.started.exists():
            wait_for_end(self.started().monitor)
        return record

    def log(self) -> bytes:
        """Return the whole log, including rotated files."""
        files = [*sorted(self.place.path.glob("0.log.*")), self.place.log]
        return b"".join(path.read_bytes() for path in files if path.exists())

    def wrote(self, stream: str = "stdout") -> bytes:
        """Return the output of one stream, decoded from the log."""
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
    """A shim, and the agent's part in using it."""

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
        """Start the shim; return its record once it serves requests."""
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
        """Launch a container that runs a command."""
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
        """Send a signal, wait for the end, and return the exit code."""
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
    """A running shim; no process is left afterwards."""
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
    """Return command lines of processes with this folder in their arguments or environment."""
    mark = os.fsencode(root)
    matches = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal() and int(path.name) != os.getpid():
            with contextlib.suppress(OSError):
                command_line = (path / "cmdline").read_bytes()
                if mark in command_line or mark in (path / "environ").read_bytes():
                    matches.append(f"{path.name} {command_line.decode(errors='replace')}")
    return matches


def wait_for_end(process: ProcessIdentity) -> None:
    wait_for(lambda: not is_alive(process), named=f"the end of process {process.pid}")


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
