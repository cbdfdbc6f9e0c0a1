"""How containers are kept apart from each other and from the machine."""

import os
import subprocess
from enum import Enum

import msgspec

from podstatus.base.programs import find_program
from podstatus.runtime.process.spec.environment import DEFAULT_PATH

_TIMEOUT_SECONDS = 10.0
"""A sandbox that runs `true` takes a few milliseconds."""
_INSTALL_HINT = (
    "install it (Debian: apt install bubblewrap), or choose --isolation none, under which pods "
    "with volumes cannot run"
)


class Isolation(Enum):
    """What is between a container and the machine."""

    BUBBLEWRAP = "bubblewrap"
    NONE = "none"


class Bubblewrap(msgspec.Struct, frozen=True, kw_only=True):
    """A program that makes sandboxes, which was tried."""

    program: str
    version: str
    setpriv: str = ""
    """What changes the user inside; empty if there is none."""
    supports_bind_fd: bool = False
    """Whether it mounts a file that it is handed open, and not only one that has a name."""


class BubblewrapUnavailableError(Exception):
    """There is no bubblewrap, or it does not work; the message says why and what to do."""


def find_bubblewrap() -> Bubblewrap:
    """The bubblewrap of this machine. Raises NoBubblewrapError if it makes no sandbox."""
    program = find_program("bwrap")
    if program is None:
        raise BubblewrapUnavailableError(f"there is no bwrap on PATH; {_INSTALL_HINT}")
    version = _output(program, "--version").rpartition(" ")[2]
    sandbox = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    _output(program, *sandbox, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--", "true")
    # Inside, only what the system has is to be seen.
    binds = "--ro-bind-fd" in _output(program, "--help")
    setpriv = find_program("setpriv", DEFAULT_PATH) or ""
    return Bubblewrap(
        program=os.path.realpath(program), version=version, setpriv=setpriv, supports_bind_fd=binds
    )


def _output(program: str, *arguments: str) -> str:
    try:
        # Only what we found on PATH, with arguments that are all ours.
        done = subprocess.run(  # noqa: S603
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
            f"{program} cannot be used: {error}; {_INSTALL_HINT}"
        ) from error
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise BubblewrapUnavailableError(
            f"{program} cannot make a sandbox: {said}; allow user namespaces "
            "(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone or "
            f"kernel.apparmor_restrict_unprivileged_userns), or {_INSTALL_HINT}"
        )
    return done.stdout.strip()
