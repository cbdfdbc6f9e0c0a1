"""The arguments of bubblewrap for a container.

The root is the host's, entry by entry and read-only, so that mount points can be made beside what
is there. What is nobody's business is hidden by empty folders. In the end all that was made
for this is made read-only too: writable are volumes, /tmp, /dev/shm and the message.
"""

from collections.abc import Iterator, Mapping

import msgspec

from podstatus.runtime.process.spec.security import ProcessCredentials

_READ_ONLY_PROC = ("sys", "sysrq-trigger", "irq", "bus", "fs")
"""Of /proc: who is root may write there whatever its capabilities are."""
_DEV_SHM = "/dev/shm"  # noqa: S108


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

    argv: tuple[str, ...]
    """The program and its arguments."""
    descriptors: Mapping[int, HostPath] = {}
    """By their position among the words: those that become the number of an open file."""


class ExpandedFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of the host that is shown entry by entry, so that mount points fit in."""

    path: str
    entries: tuple[str, ...] = ()
    """Names of what is shown in it."""
    links: Mapping[str, str] = {}
    """Symbolic links in it, and where they lead."""


class SandboxSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a container sees."""

    folders: tuple[ExpandedFolder, ...]
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


def bubblewrap_args(
    program: str, sandbox: SandboxSpec, run_as: ProcessCredentials, *, root: bool
) -> BubblewrapArgs:
    """The program and its arguments, up to the command. `root` is whether the agent is."""
    arguments = [program, "--unshare-pid", "--as-pid-1", "--die-with-parent"]
    arguments += ["--unshare-cgroup-try"]
    arguments += [] if sandbox.share_ipc else ["--unshare-ipc"]
    arguments += ["--unshare-uts", "--hostname", sandbox.hostname] if sandbox.hostname else []
    arguments += ["--cap-drop", "ALL"]
    if root:
        for name in retained_capabilities(run_as):
            arguments += ["--cap-add", f"CAP_{name}"]
    arguments += _root_args(sandbox)
    descriptors = _add_mounts(sandbox, arguments)
    for path in sandbox.hidden_in_mounts:
        arguments += ["--tmpfs", path, "--remount-ro", path]
    for path in sandbox.masked_in_mounts:
        arguments += ["--ro-bind", "/dev/null", path]
    for path in sorted(_created_folders(sandbox), key=_depth, reverse=True):
        arguments += ["--remount-ro", path]
    arguments += ["--clearenv"]
    for name, value in sandbox.env.items():
        arguments += ["--setenv", name, value]
    return BubblewrapArgs(argv=(*arguments, "--chdir", sandbox.cwd), descriptors=descriptors)


def retained_capabilities(run_as: ProcessCredentials) -> tuple[str, ...]:
    """What it keeps, and what it takes to become who it is: that is gone with being root."""
    switching = () if run_as.groups is None else ("SETGID", "SETUID")
    return tuple(sorted({*run_as.capabilities, *switching}))


def setpriv_args(setpriv: str, run_as: ProcessCredentials) -> tuple[str, ...]:
    """What stands before the command to run it as somebody else inside; root may do that.

    The kernel then forgets bubblewrap's `--die-with-parent`, and would not let it kill another
    user's process anyway: whoever started bubblewrap has to kill what is left.
    """
    groups = ",".join(str(group) for group in run_as.groups or ())
    return (
        setpriv,
        f"--reuid={run_as.user}",
        f"--regid={run_as.group}",
        f"--groups={groups}" if groups else "--clear-groups",
        *(("--inh-caps=-all",) if run_as.user else ()),
        "--",
    )


def _root_args(sandbox: SandboxSpec) -> Iterator[str]:
    for folder in sorted(sandbox.folders, key=lambda folder: _depth(folder.path)):
        if folder.path != "/":
            yield from ("--perms", "0755", "--tmpfs", folder.path)
        base = folder.path.rstrip("/")
        for name in folder.entries:
            yield from ("--ro-bind-try", f"{base}/{name}", f"{base}/{name}")
        for name, target in folder.links.items():
            yield from ("--symlink", target, f"{base}/{name}")
    yield from ("--dev", "/dev")
    if sandbox.share_ipc:
        yield from ("--bind", _DEV_SHM, _DEV_SHM)
    else:
        yield from ("--perms", "1777", "--tmpfs", _DEV_SHM)
    yield from ("--proc", "/proc")
    for name in _READ_ONLY_PROC:
        yield from ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")
    for path in sorted(sandbox.hidden, key=_depth):
        yield from ("--perms", "0755", "--tmpfs", path)
    for path in sandbox.masked:
        yield from ("--ro-bind", "/dev/null", path)
    yield from ("--bind", sandbox.tmp, "/tmp")  # noqa: S108


def _add_mounts(sandbox: SandboxSpec, arguments: list[str]) -> dict[int, HostPath]:
    """Parents before children. Bubblewrap would make the way to each for root alone."""
    descriptors = {}
    mounts = sorted(sandbox.mounts, key=lambda mount: _depth(mount.target))
    volumes = tuple(f"{mount.target}/" for mount in mounts)
    for mount in mounts:
        for above in _parents(mount.target):
            if not f"{above}/".startswith(volumes):
                arguments += ["--perms", "0755", "--dir", above]
        option = "--ro-bind" if mount.read_only else "--bind"
        if mount.host_path is not None:
            option += "-fd"
            descriptors[len(arguments) + 1] = mount.host_path
        arguments += [option, mount.source, mount.target]
    return descriptors


def _parents(path: str) -> Iterator[str]:
    steps = path.strip("/").split("/")
    for count in range(1, len(steps)):
        yield "/" + "/".join(steps[:count])


def _created_folders(sandbox: SandboxSpec) -> list[str]:
    return ["/dev", *sandbox.hidden, *(folder.path for folder in sandbox.folders)]


def _depth(path: str) -> int:
    return 0 if path == "/" else path.count("/")
