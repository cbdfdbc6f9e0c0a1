"""Containers for exec sessions, without a shim: a process, or one in bubblewrap."""

import base64
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from podstatus.runtime.process.records.models import ExecContext, LaunchRecord, ProcessIdentity
from podstatus.runtime.process.sandbox.isolation import (
    SeccompUnavailableError,
    find_architecture,
)
from podstatus.runtime.process.seccomp.bpf_filter import assemble
from podstatus.runtime.process.seccomp.default_profile import default_profile
from podstatus.runtime.process.spec.capabilities import capability_numbers
from podstatus.runtime.process.state.process_identity import read_identity, send_signal
from tests.runtime.process.a_log import a_launch

BWRAP = shutil.which("bwrap")
ENV = {"PATH": "/usr/bin:/bin", "QUOTES": "a 'b' \"c\"\n$(d) ü --chdir", "EMPTY": ""}
USUAL = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_SETGID", "CAP_SETUID")


def _filter() -> str:
    """The filter of a container without capabilities, as in a launch record."""
    try:
        architecture = find_architecture()
    except SeccompUnavailableError:
        return ""
    program = assemble(architecture.audit, default_profile(architecture, ()))
    return base64.b64encode(program).decode()


FILTER = _filter()
"""Applies to exec commands; the container's own command, which only sleeps, has no filter."""


class Container(msgspec.Struct, frozen=True, kw_only=True):
    launch: LaunchRecord
    process: ProcessIdentity
    popen: "subprocess.Popen[bytes]"

    def end(self) -> None:
        """Kill all processes: a command that switched users lost --die-with-parent."""
        send_signal(self.process, signal.SIGKILL)
        self.popen.kill()
        self.popen.wait()


@contextmanager
def plain_container(**changes: object) -> Iterator[Container]:
    popen = subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)
    launch = a_launch(**{"env": ENV, "cwd": "/usr", "seccomp": FILTER, **changes})
    yield from _running(launch, popen, popen.pid)


@contextmanager
def isolated_container(
    tmp: Path, *, add: tuple[str, ...] = USUAL, **changes: object
) -> Iterator[Container]:
    assert BWRAP is not None
    settings = [option for item in ENV.items() for option in ("--setenv", *item)]
    capabilities = [option for name in add for option in ("--cap-add", name)]
    arguments = (
        *(BWRAP, "--unshare-pid", "--unshare-uts", "--unshare-ipc", "--unshare-cgroup-try"),
        *("--as-pid-1", "--die-with-parent", "--hostname", "p", "--ro-bind", "/", "/"),
        *("--dev", "/dev", "--proc", "/proc", "--bind", str(tmp), "/tmp"),
        *("--cap-drop", "ALL", *capabilities, "--clearenv", *settings, "--chdir", "/usr"),
    )
    context = ExecContext(cwd="/usr", capabilities=capability_numbers(add))
    fields = {"bubblewrap": arguments, "cwd": "", "env": ENV, "exec_context": context}
    launch = a_launch(**{**fields, "seccomp": FILTER, **changes})
    reader, writer = os.pipe()
    popen = subprocess.Popen(
        [*arguments, "--json-status-fd", str(writer), "--", *launch.argv],
        pass_fds=(writer,),
        env={},
    )
    os.close(writer)
    with os.fdopen(reader) as file:
        pid = json.loads(file.readline())["child-pid"]
        _until_executed(pid)
        yield from _running(launch, popen, pid)


def _until_executed(pid: int) -> None:
    while Path(f"/proc/{pid}/comm").read_text() != "sleep\n":
        os.sched_yield()


def _running(
    launch: LaunchRecord, popen: "subprocess.Popen[bytes]", pid: int
) -> Iterator[Container]:
    process = read_identity(pid)
    assert process is not None
    container = Container(launch=launch, process=process, popen=popen)
    try:
        yield container
    finally:
        container.end()


def running_with(word: str) -> list[str]:
    """Return the command lines on this machine that contain a word."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line:
            lines.append(line)
    return lines
