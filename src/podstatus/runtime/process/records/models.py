"""What agent and shim tell each other in files, as values. The shim reads and writes them as JSON.

Moments are nanoseconds since the Unix epoch. A process is told from a later one with the same
pid by when it was started (field 22 of /proc/<pid>/stat, clock ticks since the machine booted)
and by the boot (/proc/sys/kernel/random/boot_id).
"""

from typing import Any

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.resource_limits import CgroupLimits


class ProcessIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Which process, of all there have ever been."""

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
    """How many shims there were before."""
    created_at: int
    stopped: bool = False
    """Its shim was told to end."""
    limits: CgroupLimits | None = None
    """What the pod as a whole was given; None if an older agent did not say."""


class ShimRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A shim that can be asked."""

    process: ProcessIdentity
    sandbox_id: str


class HostPathArgument(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder of the host that bubblewrap is handed open."""

    argument: int
    """Which of bubblewrap's arguments becomes its number; the program is 0."""
    path: str
    """Without links: none is followed."""
    device: int
    inode: int
    """What was checked; if there is another by now, the attempt is not started."""


class LaunchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How to start an attempt; also what the agent wants to know of it later."""

    id: str
    container: str
    """Its name in the pod's spec."""
    restart_count: int
    sandbox_id: str
    created_at: int
    image: str
    stop_signal: int
    message_path: str
    """Where the shim's side of the termination message is; empty for none."""
    message_fallback: bool
    """Whether the end of the log is taken if there is no message (FallbackToLogsOnError)."""

    argv: tuple[str, ...]
    """The command, no shell."""
    env: dict[str, str]
    cwd: str
    """Where it starts. With `bubblewrap`, which has it among its arguments, this is empty."""
    bubblewrap: tuple[str, ...] | None = None
    """Arguments of bubblewrap, its program first, up to the command; None: not isolated. All but
    the program are handed over by `--args`, so that nobody sees them in a list of processes. The
    environment is among them: bubblewrap itself runs with an empty one."""
    host_paths: tuple[HostPathArgument, ...] = ()
    user: int | None = None
    """Who it runs as; with `bubblewrap` the command itself changes to that inside, and this stays
    None."""
    group: int | None = None
    groups: tuple[int, ...] | None = None
    """None: as the agent's."""
    capabilities: tuple[int, ...] | None = None
    """Numbers of all that can ever be had inside; None: what the agent, an ordinary user, has."""
    seccomp: str = ""
    """The filter of system calls, a BPF program in base 64; empty for none."""
    cgroups: tuple[str, ...] = ()
    """Files that the pid is written to before the command begins: `…/cgroup.procs`."""
    oom_events: str = ""
    """A file with a line `oom_kill N`; empty for none."""
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    log_max_bytes: int
    log_max_files: int
    resources: dict[str, Any] = {}
    """What was asked for, as it travels."""


class ResizeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt was given after it was started."""

    resources: dict[str, Any]
    """As they travel."""


class StartRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt whose command was executed."""

    process: ProcessIdentity
    """Of the command itself: who is asked to end."""
    keeper: ProcessIdentity
    """Of the part of the shim that looks after it."""
    started_at: int


class ExitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of which nothing runs any more."""

    exit_code: int
    """128 and the signal for one that was killed; 128 for a command that cannot be executed."""
    reason: str
    """`Completed`, `Error`, `OOMKilled`, or `StartError`."""
    message: str = ""
    """Why the command could not be executed."""
    started_at: int
    """0 if it never ran."""
    finished_at: int
