"""The arguments of bubblewrap for a container, and their limit.

The root consists of read-only binds of the host's entries, so that mount points can be created
beside them. Private folders are hidden by empty ones. Finally the created folders are made
read-only, too: only volumes, /tmp, /dev/shm and the message file are writable.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from podstatus.kube.objects.containers import Container
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.records.models import HostPathArgument
from podstatus.runtime.process.spec.config_errors import config_error
from podstatus.runtime.process.spec.security import ProcessCredentials

_READ_ONLY_PROC = ("sys", "sysrq-trigger", "irq", "bus", "fs")
"""Below /proc: root may write there regardless of its capabilities."""
_DEV_SHM = "/dev/shm"  # noqa: S108


class HostPath(msgspec.Struct, frozen=True, kw_only=True):
    """A host file or folder that was checked."""

    path: str
    """Without symbolic links."""
    device: int
    inode: int


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A host path that is visible in a container."""

    source: str
    target: str
    read_only: bool = False
    host_path: HostPath | None = None
    """The checked inode: exactly that is mounted, even if the path is replaced."""


class BubblewrapArgs(msgspec.Struct, frozen=True, kw_only=True):
    """Command line of bubblewrap, up to the command."""

    argv: tuple[str, ...]
    """The program and its arguments."""
    host_paths: tuple[HostPathArgument, ...] = ()


class ExpandedFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A host folder that is shown entry by entry, so that mount points can be added."""

    path: str
    entries: tuple[str, ...] = ()
    """Names of the visible entries."""
    links: Mapping[str, str] = {}
    """Symbolic links in it, and their targets."""


class SandboxSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The view of a container on the host's files."""

    folders: tuple[ExpandedFolder, ...]
    """The root, and other folders in which mount points are missing."""
    hidden: tuple[str, ...] = ()
    """Folders that appear empty."""
    masked: tuple[str, ...] = ()
    """Files that appear empty."""
    tmp: str
    mounts: tuple[Mount, ...] = ()
    hidden_in_mounts: tuple[str, ...] = ()
    """Folders that appear empty, and would be visible through a mount."""
    masked_in_mounts: tuple[str, ...] = ()
    """Files that appear empty, and would be visible through a mount."""
    env: Mapping[str, str] = {}
    cwd: str = "/"
    hostname: str = ""
    """Its own; empty: the host's."""
    share_ipc: bool = False
    """Whether it shares the IPC namespace and /dev/shm of the host."""
    inherit_ipc: bool = False
    """Whether the shim starts bubblewrap in the container's own IPC namespace."""


def bubblewrap_args(
    program: str, sandbox: SandboxSpec, run_as: ProcessCredentials, *, root: bool
) -> BubblewrapArgs:
    """Return the command line up to the command. `root`: the agent runs as root."""
    arguments = [program, "--unshare-pid", "--as-pid-1", "--die-with-parent"]
    arguments += ["--unshare-cgroup-try"]
    arguments += [] if sandbox.share_ipc or sandbox.inherit_ipc else ["--unshare-ipc"]
    arguments += ["--unshare-uts", "--hostname", sandbox.hostname] if sandbox.hostname else []
    arguments += ["--cap-drop", "ALL"]
    if root:
        for name in retained_capabilities(run_as):
            arguments += ["--cap-add", f"CAP_{name}"]
    arguments += _root_args(sandbox)
    host_paths = _add_mounts(sandbox, arguments)
    for path in sandbox.hidden_in_mounts:
        arguments += ["--tmpfs", path, "--remount-ro", path]
    for path in sandbox.masked_in_mounts:
        arguments += ["--ro-bind", "/dev/null", path]
    created = ["/dev", *sandbox.hidden, *(folder.path for folder in sandbox.folders)]
    for path in sorted(created, key=_depth, reverse=True):
        arguments += ["--remount-ro", path]
    arguments += ["--clearenv"]
    for name, value in sandbox.env.items():
        arguments += ["--setenv", name, value]
    return BubblewrapArgs(argv=(*arguments, "--chdir", sandbox.cwd), host_paths=host_paths)


def retained_capabilities(run_as: ProcessCredentials) -> tuple[str, ...]:
    """Return the capabilities of the container, and those needed to switch the user.

    The latter are lost with the switch from root.
    """
    switching = () if run_as.groups is None else ("SETGID", "SETUID")
    return tuple(sorted({*run_as.capabilities, *switching}))


def setpriv_args(setpriv: str, run_as: ProcessCredentials) -> tuple[str, ...]:
    """Return the prefix of a command that switches the user inside; requires root.

    The switch resets bubblewrap's `--die-with-parent`, and bubblewrap may not kill processes of
    another user: the monitor has to kill the remaining ones.
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


def _add_mounts(sandbox: SandboxSpec, arguments: list[str]) -> tuple[HostPathArgument, ...]:
    """Add the mounts, parents first. Bubblewrap would create parent folders for root only."""
    host_paths = []
    mounts = sorted(sandbox.mounts, key=lambda mount: _depth(mount.target))
    volumes = tuple(f"{mount.target}/" for mount in mounts)
    for mount in mounts:
        for parent in _parents(mount.target):
            if not f"{parent}/".startswith(volumes):
                arguments += ["--perms", "0755", "--dir", parent]
        option = "--ro-bind" if mount.read_only else "--bind"
        if (path := mount.host_path) is not None:
            option += "-fd"
            position = len(arguments) + 1
            host_paths.append(
                HostPathArgument(
                    argument=position, path=path.path, device=path.device, inode=path.inode
                )
            )
        arguments += [option, mount.source, mount.target]
    return tuple(host_paths)


def _parents(path: str) -> Iterator[str]:
    steps = path.strip("/").split("/")
    for count in range(1, len(steps)):
        yield "/" + "/".join(steps[:count])


def _depth(path: str) -> int:
    return 0 if path == "/" else path.count("/")


MAX_ARGUMENTS = 9000
"""Bubblewrap exits if there are more. A container over the limit is rejected before its start, with
the counts: otherwise bubblewrap would fail at each of endless restarts. Upstream: MAX_ARGS,
bubblewrap.c v0.8.0; arguments from `--args` and those of the command both count.
"""
_RESERVED_ARGUMENTS = 16
"""Arguments that the shim adds: file descriptors, and the separator before the command."""
_ARGUMENTS_PER_VARIABLE = 3
MAX_VARIABLES = MAX_ARGUMENTS // _ARGUMENTS_PER_VARIABLE
MAX_MOUNTS = 500
"""volumeMounts of one container; each takes at least three arguments, and the root a few hundred.
"""


def check_spec(container: Container) -> None:
    """Reject what cannot fit before anything is created. Raises CannotStartError."""
    mounts = len(container.volume_mounts or ())
    if mounts > MAX_MOUNTS:
        raise config_error(
            f"{mounts} volumeMounts are not supported: a sandbox has at most {MAX_MOUNTS}; "
            "mount fewer, larger volumes"
        )
    check_variables({variable.name for variable in container.env or ()})


def check_variables(names: Collection[str]) -> None:
    """Reject more variables than fit in any case. Raises CannotStartError."""
    if len(names) > MAX_VARIABLES:
        raise _too_many_arguments(len(names), len(names) * _ARGUMENTS_PER_VARIABLE)


def check_arguments(
    arguments: Sequence[str], argv: Sequence[str], env: Mapping[str, str], mounts: int
) -> None:
    """Reject more arguments than bubblewrap accepts. Raises CannotStartError."""
    count = len(arguments) + len(argv) + _RESERVED_ARGUMENTS
    if count > MAX_ARGUMENTS:
        more = f", {mounts} mounts and {len(argv)} command arguments"
        raise _too_many_arguments(len(env), count, more)


def _too_many_arguments(variables: int, count: int, more: str = "") -> CannotStartError:
    return config_error(
        f"{variables} environment variables{more} are not supported: they take {count} arguments "
        f"of bubblewrap, which accepts {MAX_ARGUMENTS}; put variables into a volume, or arguments "
        "into a file"
    )
