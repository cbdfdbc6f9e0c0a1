"""The arguments of bubblewrap for a container.

The root is the host's, entry by entry and read-only, so that mount points can be made beside what
is there. What is nobody's business is hidden by empty folders. In the end all that was made
for this is made read-only too: writable are volumes, /tmp, /dev/shm and the message.
"""

from collections.abc import Iterator, Mapping

import msgspec

from podstatus.runtime.process.spec.security import Credentials

_READ_ONLY_PROC = ("sys", "sysrq-trigger", "irq", "bus", "fs")
"""Of /proc: who is root may write there whatever its capabilities are."""
_SHARED_MEMORY = "/dev/shm"  # noqa: S108


class HostPath(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder of the host that was checked."""

    path: str
    """Without links."""
    device: int
    inode: int


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """Something of the host that is to be seen in a container."""

    source: str
    target: str
    read_only: bool = False
    host_path: HostPath | None = None
    """What was checked at the source: that very file is mounted, whatever has its name then."""


class BubblewrapArgs(msgspec.Struct, frozen=True, kw_only=True):
    """How bubblewrap is called, up to the command."""

    words: tuple[str, ...]
    """The program and its arguments."""
    descriptors: Mapping[int, HostPath] = {}
    """By their position among the words: those that become the number of an open file."""


class OpenedFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of the host that is shown entry by entry, so that mount points fit in."""

    path: str
    entries: tuple[str, ...] = ()
    """Names of what is shown in it."""
    links: Mapping[str, str] = {}
    """Symbolic links in it, and where they lead."""


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """What a container sees."""

    folders: tuple[OpenedFolder, ...]
    """The root, and others in which mount points are missing."""
    hidden: tuple[str, ...] = ()
    """Folders that are empty for it."""
    masked: tuple[str, ...] = ()
    """Files that are empty for it."""
    tmp: str
    mounts: tuple[Mount, ...] = ()
    hidden_in_mounts: tuple[str, ...] = ()
    """Folders that are empty for it, and would be seen through a mount."""
    masked_in_mounts: tuple[str, ...] = ()
    """Files of this kind."""
    env: Mapping[str, str] = {}
    cwd: str = "/"
    hostname: str = ""
    """Its own; empty: the host's."""
    share_ipc: bool = False


def bubblewrap_args(program: str, box: Sandbox, who: Credentials, *, root: bool) -> BubblewrapArgs:
    """The program and its arguments, up to the command. `root` is whether the agent is."""
    arguments = [program, "--unshare-pid", "--as-pid-1", "--die-with-parent"]
    arguments += ["--unshare-cgroup-try"]
    arguments += [] if box.share_ipc else ["--unshare-ipc"]
    arguments += ["--unshare-uts", "--hostname", box.hostname] if box.hostname else []
    arguments += ["--cap-drop", "ALL"]
    if root:
        for name in kept_capabilities(who):
            arguments += ["--cap-add", f"CAP_{name}"]
    arguments += _root(box)
    descriptors = _add_mounts(box, arguments)
    for path in box.hidden_in_mounts:
        arguments += ["--tmpfs", path, "--remount-ro", path]
    for path in box.masked_in_mounts:
        arguments += ["--ro-bind", "/dev/null", path]
    for path in sorted(_made(box), key=_depth, reverse=True):
        arguments += ["--remount-ro", path]
    arguments += ["--clearenv"]
    for name, value in box.env.items():
        arguments += ["--setenv", name, value]
    return BubblewrapArgs(words=(*arguments, "--chdir", box.cwd), descriptors=descriptors)


def kept_capabilities(who: Credentials) -> tuple[str, ...]:
    """What it keeps, and what it takes to become who it is: that is gone with being root."""
    switching = () if who.groups is None else ("SETGID", "SETUID")
    return tuple(sorted({*who.capabilities, *switching}))


def switch_user(setpriv: str, who: Credentials) -> tuple[str, ...]:
    """What stands before the command to run it as somebody else inside; root may do that.

    The kernel then forgets bubblewrap's `--die-with-parent`, and would not let it kill another
    user's process anyway: whoever started bubblewrap has to kill what is left.
    """
    groups = ",".join(str(group) for group in who.groups or ())
    return (
        setpriv,
        f"--reuid={who.user}",
        f"--regid={who.group}",
        f"--groups={groups}" if groups else "--clear-groups",
        *(("--inh-caps=-all",) if who.user else ()),
        "--",
    )


def _root(box: Sandbox) -> Iterator[str]:
    for folder in sorted(box.folders, key=lambda folder: _depth(folder.path)):
        if folder.path != "/":
            yield from ("--perms", "0755", "--tmpfs", folder.path)
        base = folder.path.rstrip("/")
        for name in folder.entries:
            yield from ("--ro-bind-try", f"{base}/{name}", f"{base}/{name}")
        for name, target in folder.links.items():
            yield from ("--symlink", target, f"{base}/{name}")
    yield from ("--dev", "/dev")
    if box.share_ipc:
        yield from ("--bind", _SHARED_MEMORY, _SHARED_MEMORY)
    else:
        yield from ("--perms", "1777", "--tmpfs", _SHARED_MEMORY)
    yield from ("--proc", "/proc")
    for name in _READ_ONLY_PROC:
        yield from ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")
    for path in sorted(box.hidden, key=_depth):
        yield from ("--perms", "0755", "--tmpfs", path)
    for path in box.masked:
        yield from ("--ro-bind", "/dev/null", path)
    yield from ("--bind", box.tmp, "/tmp")  # noqa: S108


def _add_mounts(box: Sandbox, arguments: list[str]) -> dict[int, HostPath]:
    """Parents before children. Bubblewrap would make the way to each for root alone."""
    descriptors = {}
    mounts = sorted(box.mounts, key=lambda mount: _depth(mount.target))
    volumes = tuple(f"{mount.target}/" for mount in mounts)
    for mount in mounts:
        for above in _ways(mount.target):
            if not f"{above}/".startswith(volumes):
                arguments += ["--perms", "0755", "--dir", above]
        option = "--ro-bind" if mount.read_only else "--bind"
        if mount.host_path is not None:
            option += "-fd"
            descriptors[len(arguments) + 1] = mount.host_path
        arguments += [option, mount.source, mount.target]
    return descriptors


def _ways(path: str) -> Iterator[str]:
    steps = path.strip("/").split("/")
    for count in range(1, len(steps)):
        yield "/" + "/".join(steps[:count])


def _made(box: Sandbox) -> list[str]:
    return ["/dev", *box.hidden, *(folder.path for folder in box.folders)]


def _depth(path: str) -> int:
    return 0 if path == "/" else path.count("/")
