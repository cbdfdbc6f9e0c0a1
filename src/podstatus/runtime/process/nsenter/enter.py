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
from .request import FailedError, Order

_SAFE = "--from-a-read-only-mount"


def enter(order: Order) -> None:
    """Join the container's cgroups and namespaces, become its user. Raises FailedError."""
    syscalls.hide_memory()
    kinds = _other_namespaces(order.pid) if order.isolated else ()
    if order.isolated and "user" not in kinds:
        _run_from_read_only_mount()
    _join_cgroups(order.cgroups)
    syscalls.leave_keyring()
    try:
        _become(order, kinds)
    except OSError as error:
        raise FailedError(f"cannot enter the container: {error.strerror}") from error
    # Changes of user undo it.
    syscalls.hide_memory()
    _confine(order)


def _become(order: Order, kinds: tuple[str, ...]) -> None:
    # In a user namespace of its own there is only its own user: it must be him who enters. To
    # enter without one takes root, who becomes that user only then.
    if "user" in kinds:
        _change_user(order)
    if kinds:
        syscalls.join_namespaces(order.process, kinds)
    if order.capabilities is not None:
        syscalls.limit_gains(frozenset(order.capabilities))
    if "user" not in kinds:
        _change_user(order)
    if order.capabilities is not None:
        syscalls.set_capabilities(frozenset(order.capabilities))


def _confine(order: Order) -> None:
    """Have what bubblewrap, or the shim, has given the container: from here on for all of this."""
    try:
        syscalls.allow_no_new_privileges()
        if order.seccomp:
            syscalls.install_filter(base64.b64decode(order.seccomp))
    except OSError as error:
        raise FailedError(f"cannot confine the command: {error.strerror}") from error


def _other_namespaces(pid: int) -> tuple[str, ...]:
    try:
        return tuple(kind for kind in syscalls.NAMESPACES if _namespace(pid, kind) != _own(kind))
    except OSError as error:
        raise FailedError("the container has ended") from error


def _namespace(pid: int | str, kind: str) -> str:
    return os.readlink(f"/proc/{pid}/ns/{kind}")  # noqa: PTH115 - little is loaded here


def _own(kind: str) -> str:
    return _namespace("self", kind)


def _run_from_read_only_mount() -> None:
    if _SAFE in sys.argv:
        return
    try:
        syscalls.leave_mounts(os.path.dirname(os.path.realpath(sys.executable)))  # noqa: PTH120
        os.execv(sys.executable, [*sys.orig_argv, _SAFE])  # noqa: S606 - no shell is what is wanted
    except OSError as error:
        raise FailedError(f"cannot prepare to enter the container: {error.strerror}") from error


def _join_cgroups(files: list[str]) -> None:
    for name in files:
        try:
            opened = os.open(name, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(opened, b"0")
            finally:
                os.close(opened)
        except OSError as error:
            raise FailedError(f"cannot join the cgroup {name}: {error.strerror}") from error


def _change_user(order: Order) -> None:
    if order.user is not None and order.user != os.geteuid():
        syscalls.keep_capabilities()
    if order.groups is not None and set(order.groups) != set(os.getgroups()):
        os.setgroups(order.groups)
    if order.group is not None:
        os.setresgid(order.group, order.group, order.group)
    if order.user is not None:
        os.setresuid(order.user, order.user, order.user)
