"""Break-out attempts from inside of a pod. Runs there; standard library only.

Given what to aim at as JSON, it prints as JSON what came of each attempt, by its name.
"""

import ctypes
import json
import os
import signal
import socket
import ssl
import stat
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

Attempt = Callable[[], object]

_LIBC = ctypes.CDLL(None, use_errno=True)
_REMOUNT, _BIND, _RECURSIVE = 32, 4096, 16384
_NEW_USERS, _NEW_MOUNTS = 0x10000000, 0x20000
_DETACH = 2
_PTRACE_SEIZE = 0x4206
_PIDFD_GETFD = 438
_MINE = Path("/tmp")  # noqa: S108 - the sandbox's own
_STANDARD = 2


def check(result: int) -> None:
    """Raise what the kernel said of a call."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(source: str | None, target: str, flags: int, kind: bytes | None = None) -> None:
    named = None if source is None else source.encode()
    check(_LIBC.mount(named, target.encode(), kind, ctypes.c_ulong(flags), None))


def write(path: str) -> None:
    Path(path).write_text("broken out")


def read(path: str) -> str:
    with Path(path).open("rb") as file:
        return "read " + file.read(100).decode(errors="replace")


def as_own_root(attempt: Attempt) -> object:
    """In namespaces of our own, where we are root."""
    heard, said = os.pipe()
    if os.fork() == 0:
        try:
            check(_LIBC.unshare(_NEW_USERS | _NEW_MOUNTS))
            os.write(said, f"done: {attempt()}".encode())
        except OSError as error:
            os.write(said, str(error).encode())
        finally:
            os._exit(0)
    os.close(said)
    os.wait()
    answer = os.read(heard, 4096).decode()
    if not answer.startswith("done"):
        raise PermissionError(answer)
    return answer


def remount(folder: str) -> None:
    mount(None, folder, _REMOUNT | _BIND)
    write(f"{folder}/probe")


def bind(folder: str) -> None:
    own = _MINE / "bound"
    own.mkdir(exist_ok=True)
    mount(folder, str(own), _BIND | _RECURSIVE)
    remount(str(own))


def uncover(folder: str) -> list[str]:
    check(_LIBC.umount2(folder.encode(), _DETACH))
    return os.listdir(folder)  # noqa: PTH208 - names will do


def device(kind: int, number: int) -> str:
    path = _MINE / f"device-{number}"
    os.mknod(path, kind | 0o666, number)
    return read(str(path))


def trace(pid: int) -> None:
    check(_LIBC.ptrace(*map(ctypes.c_long, (_PTRACE_SEIZE, pid, 0, 0))))


def steal_file(pid: int) -> None:
    check(_LIBC.syscall(_PIDFD_GETFD, os.pidfd_open(pid), 0, 0))


def connect(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def ask(url: str) -> str:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # any server will do
    try:
        with urllib.request.urlopen(url, timeout=10, context=context) as answer:  # noqa: S310
            return f"{answer.status}"
    except urllib.error.HTTPError as error:
        raise PermissionError(error.code, error.reason) from error


def inherited() -> dict[str, str]:
    """The files that we were handed besides our input and output."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        if int(entry.name) > _STANDARD and os.path.lexists(entry):
            found[entry.name] = str(entry.readlink())
    return found


def on_folders(folders: dict[str, str], covered: dict[str, str]) -> Iterator[tuple[str, Attempt]]:
    for name, path in folders.items():
        yield f"write: {name}", partial(write, f"{path}/probe")
        for action, attempt in (("remount", remount), ("bind", bind)):
            yield f"{action}: {name}", partial(attempt, path)
            yield f"{action} as own root: {name}", partial(as_own_root, partial(attempt, path))
    for name, path in covered.items():
        yield f"uncover: {name}", partial(uncover, path)
        yield f"uncover as own root: {name}", partial(as_own_root, partial(uncover, path))


def on_files(files: dict[str, str]) -> Iterator[tuple[str, Attempt]]:
    for name, path in files.items():
        yield f"read: {name}", partial(read, path)
        yield f"read by /proc: {name}", partial(read, f"/proc/1/root{path}")
        yield f"read by ..: {name}", partial(read, f"{_MINE}/../../..{path}")
        yield f"write: {name}", partial(write, path)
        yield f"link: {name}", partial(os.link, path, _MINE / "linked")


def on_processes(processes: dict[str, int]) -> Iterator[tuple[str, Attempt]]:
    for name, pid in processes.items():
        yield f"signal: {name}", partial(os.kill, pid, signal.SIGKILL)
        yield f"trace: {name}", partial(trace, pid)
        yield f"take a file: {name}", partial(steal_file, pid)
        for what in ("environ", "cmdline", "maps", "root/etc/passwd", "fd/0"):
            yield f"look at {what}: {name}", partial(read, f"/proc/{pid}/{what}")


def on_the_kernel() -> Iterator[tuple[str, Attempt]]:
    for path in ("sys/kernel/hostname", "sys/vm/drop_caches", "sysrq-trigger", "irq/0/x"):
        yield f"set: {path}", partial(write, f"/proc/{path}")
    yield "device: disk", partial(device, stat.S_IFBLK, os.makedev(8, 0))
    yield "device: memory", partial(device, stat.S_IFCHR, os.makedev(1, 1))
    yield "mount: tmpfs", partial(mount, "x", str(_MINE), 0, b"tmpfs")
    yield "mount: proc", partial(mount, "x", str(_MINE), 0, b"proc")
    yield "set: name of the host", lambda: check(_LIBC.sethostname(b"mine", 4))
    yield "read: messages of the kernel", partial(read, "/proc/kmsg")


def attempts(aim: dict[str, Any]) -> Iterator[tuple[str, Attempt]]:
    yield from on_folders(aim["folders"], aim["covered"])
    yield from on_files(aim["files"])
    yield from on_processes(aim["processes"])
    yield from on_the_kernel()
    for name, path in aim["sockets"].items():
        yield f"connect: {name}", partial(connect, path)
    for name, url in aim["urls"].items():
        yield f"ask: {name}", partial(ask, url)


def main() -> None:
    aim = json.loads(sys.argv[1])
    came: dict[str, object] = {"inherited": inherited()}
    for name, attempt in attempts(aim):
        try:
            came[name] = f"done: {attempt()}"
        except OSError as error:
            came[name] = f"refused: {error}"
    print(json.dumps(came), flush=True)  # noqa: T201 - that is what it is for


if __name__ == "__main__":
    main()
