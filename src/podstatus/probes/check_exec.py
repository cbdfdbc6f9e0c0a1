"""Exec checks: run a command in the container.

Upstream: Probe, pkg/probe/exec/exec.go; ExpandContainerCommandOnlyStatic,
pkg/kubelet/container/helpers.go v1.36.4.
"""

from podstatus.base.clock import Clock
from podstatus.kube.expansion import ArgumentListTooLongError, expand_command
from podstatus.kube.objects.containers import Container, ExecAction
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.duration import format_duration
from podstatus.probes.decide.check_result import CheckError, CheckResult
from podstatus.probes.loop_lag import MAX_LAG_SECONDS, LagClock, loop_blocked_error
from podstatus.runtime.port import Runtime
from podstatus.runtime.run_command import CommandError, run_command


async def check_exec(
    runtime: Runtime,
    uid: PodUID,
    container_id: str,
    command: tuple[str, ...],
    *,
    seconds: float,
    clock: Clock,
) -> CheckResult:
    """Run the command; success is exit code 0 within `seconds`. Raises CheckError."""
    timer = LagClock(clock)
    try:
        result = await run_command(
            runtime, uid, container_id, command, seconds=seconds, clock=timer
        )
    except TimeoutError:
        if timer.lag_seconds > MAX_LAG_SECONDS:
            raise loop_blocked_error(timer.lag_seconds) from None
        after = format_duration(seconds)
        output = f'command timed out: "{" ".join(command)}" timed out after {after}'
        return CheckResult(success=False, output=output)
    except CommandError as error:
        raise CheckError(str(error)) from error
    return CheckResult(success=result.exit_code == 0, output=result.output)


def probe_command(action: ExecAction, container: Container) -> tuple[str, ...]:
    """The command with the container's variables expanded.

    Only values in the spec are used: a variable with `valueFrom` is empty. Raises CheckError.
    """
    values = {variable.name: variable.value for variable in container.env or ()}
    try:
        return expand_command(action.command or (), values)
    except ArgumentListTooLongError as error:
        raise CheckError(f"cannot expand the command of the probe: {error}") from error
