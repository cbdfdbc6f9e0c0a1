"""Joins a container's namespaces with the container's privileges and no more.

The entering process must not become a way out for a hostile container:

- All privileges beyond the container's are dropped before the first process is in its pid
  namespace, where other processes could take control of it.
- This process is non-dumpable, and so hidden from /proc inside. The interpreter's file, which a
  container could reach through /proc/<pid>/exe, is run from a read-only mount (root only: for an
  ordinary user the first is enough, since privileges inside do not count outside).
"""

import base64
import os
import sys

from ..shim.syscalls import (
    drop_bounding_set,
    install_seccomp_filter,
    join_new_keyring,
    set_no_new_privileges,
    set_not_dumpable,
)
from . import syscalls
from .request import ExecError, ExecRequest

_READ_ONLY_FLAG = "--from-a-read-only-mount"


def enter(request: ExecRequest) -> None:
    """Join the container's cgroups and namespaces, switch to its user. Raises ExecError."""
    set_not_dumpable()
    kinds = _other_namespaces(request.pid) if request.isolated else ()
    if request.isolated and "user" not in kinds:
        _run_from_read_only_mount()
    _join_cgroups(request.cgroups)
    join_new_keyring()
    try:
        _join_container(request, kinds)
    except OSError as error:
        raise ExecError(f"cannot enter the container: {error.strerror}") from error
    # A change of user resets it.
    set_not_dumpable()
    _confine(request)


def _join_container(request: ExecRequest, kinds: tuple[str, ...]) -> None:
    # With a user namespace, only its own user may enter. Without one, entering takes root, which
    # then switches to that user.
    if "user" in kinds:
        _change_user(request)
    if kinds:
        syscalls.join_namespaces(request.process, kinds)
    if request.capabilities is not None:
        drop_bounding_set(frozenset(request.capabilities))
    if "user" not in kinds:
        _change_user(request)
    if request.capabilities is not None:
        syscalls.set_capabilities(frozenset(request.capabilities))


def _confine(request: ExecRequest) -> None:
    """Apply no_new_privs and the seccomp filter of the container to this process."""
    try:
        set_no_new_privileges()
        if request.seccomp:
            install_seccomp_filter(base64.b64decode(request.seccomp))
    except OSError as error:
        raise ExecError(f"cannot confine the command: {error.strerror}") from error


def _other_namespaces(pid: int) -> tuple[str, ...]:
    try:
        return tuple(
            kind
            for kind in syscalls.NAMESPACES
            if _namespace(pid, kind) != _namespace("self", kind)
        )
    except OSError as error:
        raise ExecError("the container has ended") from error


def _namespace(pid: int | str, kind: str) -> str:
    return os.readlink(f"/proc/{pid}/ns/{kind}")  # noqa: PTH115 - loads as few modules as possible


def _run_from_read_only_mount() -> None:
    if _READ_ONLY_FLAG in sys.argv:
        return
    try:
        syscalls.unshare_mounts(os.path.dirname(os.path.realpath(sys.executable)))  # noqa: PTH120
        os.execv(sys.executable, [*sys.orig_argv, _READ_ONLY_FLAG])  # noqa: S606 - deliberately no shell
    except OSError as error:
        raise ExecError(f"cannot prepare to enter the container: {error.strerror}") from error


def _join_cgroups(files: list[str]) -> None:
    for name in files:
        try:
            descriptor = os.open(name, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(descriptor, b"0")
            finally:
                os.close(descriptor)
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
