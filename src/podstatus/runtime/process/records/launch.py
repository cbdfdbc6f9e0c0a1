"""Creation of the launch record of an attempt, and the exec context of older records. Pure."""

import re
import signal

import msgspec
from msgspec import structs

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.containers import Container
from podstatus.runtime.process.cgroups.pod_cgroups import CgroupPaths
from podstatus.runtime.process.records.models import ExecContext, LaunchRecord, PreparedCommand

_SETPRIV = re.compile(
    r"[^\0]*setpriv\0--reuid=(\d+)\0--regid=(\d+)\0(?:--clear-groups|--groups=([\d,]+))\0"
    r"(?:--inh-caps=-all\0)?--\0"
)
"""The command prefix of `setpriv_args`, for records without an exec context."""
FALLBACK_TO_LOGS = "FallbackToLogsOnError"


class LogLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Rotation limits of a container's log."""

    max_bytes: int = 10 * 2**20
    """Size of one file, after which it is rotated."""
    max_files: int = 5


def launch_record(
    container: Container,
    command: PreparedCommand,
    cgroup: CgroupPaths,
    log_limits: LogLimits,
    *,
    id: str,
    restart_count: int,
    sandbox_id: str,
    created_at: int,
) -> LaunchRecord:
    """Return the record that the shim starts the attempt from, and that the agent reads later."""
    return LaunchRecord(
        **structs.asdict(command),
        id=id,
        container=container.name,
        restart_count=restart_count,
        sandbox_id=sandbox_id,
        created_at=created_at,
        image=container.image,
        stop_signal=stop_signal(container),
        message_fallback=container.termination_message_policy == FALLBACK_TO_LOGS,
        cgroups=cgroup.procs,
        oom_events=cgroup.oom_events,
        stdin=container.stdin,
        stdin_once=container.stdin_once,
        tty=container.tty,
        log_max_bytes=log_limits.max_bytes,
        log_max_files=log_limits.max_files,
        resources=to_document(container.resources),
    )


def exec_context(launch: LaunchRecord) -> ExecContext:
    """Return the exec context of an attempt, also of one that an older agent started.

    The records of those have no context. Their containers outlive an upgrade of the agent, so it
    is derived here: `--chdir` was bubblewrap's last option, and a prefix of the command switches
    the user.
    """
    if launch.exec_context is not None:
        return launch.exec_context
    if launch.bubblewrap is None:
        return ExecContext(
            cwd=launch.cwd,
            user=launch.user,
            group=launch.group,
            groups=launch.groups,
            capabilities=launch.capabilities,
        )
    context = ExecContext(cwd=launch.bubblewrap[-1], capabilities=launch.capabilities or ())
    if switch := _SETPRIV.match("\0".join(launch.argv)):
        user, group, groups = switch.groups(default="")
        return ExecContext(
            cwd=context.cwd,
            user=int(user),
            group=int(group),
            groups=tuple(int(number) for number in groups.split(",") if number),
            capabilities=() if int(user) else context.capabilities,
        )
    return context


def stop_signal(container: Container) -> int:
    """Return the number of the stop signal; the API server rejects unknown names."""
    name = container.lifecycle.stop_signal if container.lifecycle is not None else None
    number = signal.Signals.__members__.get(name or "SIGTERM")
    if number is not None:
        return number
    return _real_time_signal(name or "") or signal.SIGTERM


def _real_time_signal(name: str) -> int | None:
    """Parse names such as SIGRTMIN+3 or SIGRTMAX-2."""
    for base, first in (("SIGRTMIN+", signal.SIGRTMIN), ("SIGRTMAX", signal.SIGRTMAX)):
        rest = name.removeprefix(base)
        if rest != name and rest.lstrip("-").isdigit():
            return first + int(rest)
    return None
