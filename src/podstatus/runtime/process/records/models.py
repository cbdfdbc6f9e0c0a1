"""Records that agent and shim exchange as JSON files.

Times are nanoseconds since the Unix epoch. A process is distinguished from a later one with the
same pid by its start time (field 22 of /proc/<pid>/stat, clock ticks since boot) and by the boot
(/proc/sys/kernel/random/boot_id).
"""

from typing import Any

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.cpu_and_memory_limits import CgroupLimits


class ProcessIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Identifies a process uniquely, across pid reuse and reboots."""

    pid: int
    start_ticks: int
    boot_id: str


class PodRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that was started."""

    uid: PodUID
    namespace: str
    name: str
    sandbox_id: str
    sandbox_attempt: int
    """Number of shims before this one."""
    created_at: int
    host_network: bool = False
    """What the spec says: the network is the host's in any case."""
    stopped: bool = False
    """Its shim was asked to end."""
    limits: CgroupLimits | None = None
    """Limits of the pod as a whole; None in records of older agents."""


class ShimRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A shim that serves requests."""

    process: ProcessIdentity
    sandbox_id: str


class HostPathArgument(msgspec.Struct, frozen=True, kw_only=True):
    """A host file or folder that bubblewrap receives as an open descriptor."""

    argument: int
    """Index of the bubblewrap argument that becomes the descriptor number; the program is 0."""
    path: str
    """Without symbolic links; none is followed."""
    device: int
    inode: int
    """The inode that was checked; if it differs, the attempt is not started."""


class ExecContext(msgspec.Struct, frozen=True, kw_only=True):
    """What an exec command has in common with its container, besides the environment."""

    cwd: str
    """As seen in the container."""
    user: int | None = None
    """None: that of the agent, as for the group."""
    group: int | None = None
    groups: tuple[int, ...] | None = None
    """None: those of the agent."""
    capabilities: tuple[int, ...] | None = None
    """Capability numbers; None: those of the agent, an ordinary user."""


class PreparedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a container."""

    argv: tuple[str, ...]
    """The command; no shell is involved."""
    env: dict[str, str]
    cwd: str
    """Working directory. Empty with `bubblewrap`, which has it among its arguments."""
    bubblewrap: tuple[str, ...] | None = None
    """Program and arguments of bubblewrap, up to the command; None: not isolated. All but the
    program are passed by `--args`, so that they do not appear in process lists. They include the
    environment: bubblewrap itself runs with an empty one.
    """
    host_paths: tuple[HostPathArgument, ...] = ()
    setsid: str = ""
    """Program that gives the command its terminal inside, with `bubblewrap` and a terminal; empty:
    bubblewrap has it, and the command inherits it.
    """
    user: int | None = None
    """User ID to run as. None with `bubblewrap`: there the command switches inside."""
    group: int | None = None
    groups: tuple[int, ...] | None = None
    """None: those of the agent."""
    capabilities: tuple[int, ...] | None = None
    """Bounding set, as capability numbers; None: that of the agent, an ordinary user."""
    exec_context: ExecContext | None = None
    """None in records of older agents."""
    seccomp: str = ""
    """Seccomp filter, a BPF program in base64; empty for none."""
    sysctls: dict[str, str] = {}
    """Values by name, set in an IPC namespace that the shim creates; empty: it creates none."""
    message_path: str = ""
    """Host path of the termination message file; empty for none."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(argv={self.argv[:1]}, …)"


class LaunchRecord(PreparedCommand, frozen=True, kw_only=True):
    """How to start an attempt, and what the agent needs to know about it later."""

    id: str
    container: str
    """Container name in the pod's spec."""
    restart_count: int
    sandbox_id: str
    created_at: int
    image: str
    stop_signal: int
    message_fallback: bool
    """Whether to use the end of the log if there is no message (FallbackToLogsOnError)."""
    cgroups: tuple[str, ...] = ()
    """Files (`…/cgroup.procs`) to write the pid to before the command is executed."""
    oom_events: str = ""
    """File with a line `oom_kill N`; empty for none."""
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    log_max_bytes: int
    log_max_files: int
    resources: dict[str, Any] = {}
    """Requested resources, as a JSON document."""


class ResizeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Resources applied to an attempt after its start."""

    resources: dict[str, Any]
    """As a JSON document."""


class StartRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt whose command was executed."""

    process: ProcessIdentity
    """The command itself, which receives the stop signal."""
    monitor: ProcessIdentity = msgspec.field(name="keeper")
    """The container's monitor. The JSON key is from an older version."""
    started_at: int


class ExitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of which no process runs any more."""

    exit_code: int
    """128 + n if signal n killed it; 128 if the command could not be executed."""
    reason: str
    """`Completed`, `Error`, `OOMKilled` or `StartError`."""
    message: str = ""
    """Why the command could not be executed."""
    started_at: int
    """0 if it never ran."""
    finished_at: int
