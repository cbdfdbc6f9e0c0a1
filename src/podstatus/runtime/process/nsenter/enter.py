"""Go where a container is, with its rights and no more.

The way in is a way out for a container that is hostile, so:

- All rights beyond the container's are given up before the first process is inside its pid
  namespace, where others could take hold of it.
- This process is hidden from /proc of those inside, and the interpreter's file, which they could
  reach through /proc/<pid>/exe, is run from a mount that is read-only for good (root only: for an
  ordinary user the first is enough, since rights inside do not count outside).
"""

import base64
import os
import sys

from . import syscalls
from .request import ExecError, ExecRequest

_READ_ONLY_FLAG = "--from-a-read-only-mount"


def enter(request: ExecRequest) -> None:
    """Join the container's cgroups and namespaces, become its user. Raises FailedError."""
    syscalls.set_not_dumpable()
    kinds = _other_namespaces(request.pid) if request.isolated else ()
    if request.isolated and "user" not in kinds:
        _run_from_read_only_mount()
    _join_cgroups(request.cgroups)
    syscalls.join_new_keyring()
    try:
        _join_container(request, kinds)
    except OSError as error:
        raise ExecError(f"cannot enter the container: {error.strerror}") from error
    # Changes of user undo it.
    syscalls.set_not_dumpable()
    _confine(request)


def _join_container(request: ExecRequest, kinds: tuple[str, ...]) -> None:
    # In a user namespace of its own there is only its own user: it must be him who enters. To
    # enter without one takes root, who becomes that user only then.
    if "user" in kinds:
        _change_user(request)
    if kinds:
        syscalls.join_namespaces(request.process, kinds)
    if request.capabilities is not None:
        syscalls.drop_bounding_set(frozenset(request.capabilities))
    if "user" not in kinds:
        _change_user(request)
    if request.capabilities is not None:
        syscalls.set_capabilities(frozenset(request.capabilities))


def _confine(request: ExecRequest) -> None:
    """Have what bubblewrap, or the shim, has given the container: from here on for all of this."""
    try:
        syscalls.set_no_new_privileges()
        if request.seccomp:
            syscalls.install_seccomp_filter(base64.b64decode(request.seccomp))
    except OSError as error:
        raise ExecError(f"cannot confine the command: {error.strerror}") from error


def _other_namespaces(pid: int) -> tuple[str, ...]:
    try:
        return tuple(
            kind for kind in syscalls.NAMESPACES if _namespace(pid, kind) != _own_namespace(kind)
        )
    except OSError as error:
        raise ExecError("the container has ended") from error


def _namespace(pid: int | str, kind: str) -> str:
    return os.readlink(f"/proc/{pid}/ns/{kind}")  # noqa: PTH115 - little is loaded here


def _own_namespace(kind: str) -> str:
    return _namespace("self", kind)


def _run_from_read_only_mount() -> None:
    if _READ_ONLY_FLAG in sys.argv:
        return
    try:
        syscalls.unshare_mounts(os.path.dirname(os.path.realpath(sys.executable)))  # noqa: PTH120
        os.execv(sys.executable, [*sys.orig_argv, _READ_ONLY_FLAG])  # noqa: S606 - no shell is what is wanted
    except OSError as error:
        raise ExecError(f"cannot prepare to enter the container: {error.strerror}") from error


def _join_cgroups(files: list[str]) -> None:
    for name in files:
        try:
            opened = os.open(name, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(opened, b"0")
            finally:
                os.close(opened)
        except OSError as error:
            raise ExecError(f"cannot join the cgroup {name}: {error.strerror}") from error


def _change_user(request: ExecRequest) -> None:
    if request.user is not None and request.user != os.geteuid():
        syscalls.keep_capabilities()
    if request.groups is not None and set(request.groups) != set(os.getgroups()):
        os.setgroups(request.groups)
    if request.group is not None:
        os.setresgid(request.group, request.group, request.group)
    if request.user is not None:
        os.setresuid(request.user, request.user, request.user)
