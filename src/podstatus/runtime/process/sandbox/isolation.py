"""Isolation of containers: detection of bubblewrap, and of the architecture for seccomp filters."""

import os
import subprocess
import sys
from enum import Enum
from functools import cache
from pathlib import Path

import msgspec

from podstatus.base.programs import find_program
from podstatus.runtime.process.seccomp.syscall_numbers import ARCHITECTURES, Architecture
from podstatus.runtime.process.spec.environment import DEFAULT_PATH

_TIMEOUT_SECONDS = 10.0
"""A sandbox that runs `true` takes a few milliseconds."""
_INSTALL_HINT = (
    "install it (Debian: apt install bubblewrap), or pass --isolation none; then pods with "
    "volumes cannot run"
)


class Isolation(Enum):
    """How containers are isolated from the machine."""

    BUBBLEWRAP = "bubblewrap"
    NONE = "none"


class Bubblewrap(msgspec.Struct, frozen=True, kw_only=True):
    """A bubblewrap program that was found to work."""

    program: str
    version: str
    setpriv: str = ""
    """Program that switches the user inside; empty if there is none."""
    setsid: str = ""
    """Program that gives a command its terminal inside; empty if there is none."""
    supports_bind_fd: bool = False
    """Whether it can mount an open descriptor instead of a path."""
    allows_unconfined: bool = False
    """Whether containers that ask for it run in it without a seccomp filter."""


class BubblewrapUnavailableError(Exception):
    """Bubblewrap is missing or does not work; the message says why and what to do."""


def find_bubblewrap() -> Bubblewrap:
    """Find bubblewrap on PATH and try it. Raises BubblewrapUnavailableError."""
    program = find_program("bwrap")
    if program is None:
        raise BubblewrapUnavailableError(f"bwrap is not on PATH; {_INSTALL_HINT}")
    version = _output(program, "--version").rpartition(" ")[2]
    sandbox = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    _output(program, *sandbox, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--", "true")
    supports_bind_fd = "--ro-bind-fd" in _output(program, "--help")
    return Bubblewrap(
        program=os.path.realpath(program),
        version=version,
        # Both run inside, where only the default PATH of the system is visible.
        setpriv=find_program("setpriv", DEFAULT_PATH) or "",
        setsid=find_program("setsid", DEFAULT_PATH) or "",
        supports_bind_fd=supports_bind_fd,
    )


def _output(program: str, *arguments: str) -> str:
    try:
        # The program is from PATH, and all arguments are constants.
        result = subprocess.run(  # noqa: S603
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BubblewrapUnavailableError(
            f"cannot run {program}: {error}; {_INSTALL_HINT}"
        ) from error
    if result.returncode:
        message = (result.stderr.strip().splitlines() or [f"exit code {result.returncode}"])[-1]
        raise BubblewrapUnavailableError(
            f"{program} cannot create a sandbox: {message}; allow user namespaces "
            "(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone or "
            f"kernel.apparmor_restrict_unprivileged_userns), or {_INSTALL_HINT}"
        )
    return result.stdout.strip()


_ACTIONS_FILE = Path("/proc/sys/kernel/seccomp/actions_avail")
_REQUIRED_ACTIONS = {"allow", "errno", "kill_process"}
_32_BIT_LIMIT = 2**32


class SeccompUnavailableError(Exception):
    """Seccomp filters cannot be used; the message says why."""


@cache
def find_architecture() -> Architecture:
    """Return the architecture for filters. Raises SeccompUnavailableError."""
    machine = os.uname().machine
    architecture = ARCHITECTURES.get(machine)
    if architecture is None or sys.maxsize < _32_BIT_LIMIT:
        supported = ", ".join(ARCHITECTURES)
        raise SeccompUnavailableError(f"no seccomp profile for {machine}; supported: {supported}")
    try:
        actions = _ACTIONS_FILE.read_text().split()
    except OSError as error:
        raise SeccompUnavailableError(
            f"the kernel has no seccomp: {_ACTIONS_FILE}: {error.strerror}"
        ) from error
    if missing := _REQUIRED_ACTIONS.difference(actions):
        raise SeccompUnavailableError(f"this kernel's seccomp is too old: it lacks {min(missing)}")
    return architecture
