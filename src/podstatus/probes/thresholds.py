"""When checks of a probe add up to a verdict, and when the first one is due.

    outcomes   ✓ ✗ ✗ ✗ ✓ ✓      with failureThreshold 3, successThreshold 1
    verdicts   T · · F T T

A verdict is given with every check that is the n-th in a row or later; who takes it sees whether
it is news. A check that could not be made is none: it neither counts nor breaks a row. Each
container begins with an empty row; upstream goes on with that of the one before it, unless a
probe has ended that one.

Upstream: doProbe, pkg/kubelet/prober/worker.go v1.36.4.
"""

from enum import Enum

import msgspec

from podstatus.kube.objects.containers import Probe


class ProbeType(Enum):
    """What a probe is for. The values are those of `ProbeResult.probe`."""

    STARTUP = "startup"
    """Until it succeeds, the other two are not run; if it fails, the container is restarted."""
    READINESS = "readiness"
    """Whether the container is to be given work."""
    LIVENESS = "liveness"
    """If it fails, the container is restarted."""


class CheckOutcome(Enum):
    """What one check came to."""

    SUCCESS = "success"
    FAILURE = "failure"
    UNKNOWN = "unknown"
    """It could not be made."""


class ProbeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a probe, none of them missing."""

    initial_delay: int
    period: int
    timeout: int
    successes: int
    failures: int


class Streak(msgspec.Struct, frozen=True, kw_only=True):
    """The checks of one container so far: how many in a row came to the same."""

    success: bool = False
    length: int = 0
    done: bool = False
    """There is nothing more to find out about this container."""


class StreakResult(msgspec.Struct, frozen=True):
    """The row with one more check, and what it amounts to."""

    streak: Streak
    result: bool | None
    """None: nothing changes yet."""


def probe_settings(probe: Probe) -> ProbeSettings:
    """The numbers as the API server would have filled them in: manifests of our own may lack them.

    Upstream: SetDefaults_Probe, pkg/apis/core/v1/defaults.go v1.36.4.
    """
    return ProbeSettings(
        initial_delay=max(0, probe.initial_delay_seconds),
        period=_positive_or(probe.period_seconds, 10),
        timeout=_positive_or(probe.timeout_seconds, 1),
        successes=_positive_or(probe.success_threshold, 1),
        failures=_positive_or(probe.failure_threshold, 3),
    )


def record_check(
    kind: ProbeType, settings: ProbeSettings, streak: Streak, outcome: CheckOutcome
) -> StreakResult:
    """One check more.

    After a failed liveness probe, and after any verdict on the start, the container is left
    alone: it will be restarted, or has started.
    """
    if streak.done or outcome is CheckOutcome.UNKNOWN:
        return StreakResult(streak, None)
    success = outcome is CheckOutcome.SUCCESS
    length = streak.length + 1 if success is streak.success else 1
    if length < (settings.successes if success else settings.failures):
        return StreakResult(Streak(success=success, length=length), None)
    on_hold = kind is ProbeType.STARTUP or (kind is ProbeType.LIVENESS and not success)
    return StreakResult(Streak(success=success, length=length, done=on_hold), success)


def first_due(settings: ProbeSettings, runs_for: float) -> float:
    """In how many seconds the first check is due, of a container that runs for so long.

    The age is by a clock that may have been set: nobody waits for longer than the whole delay.
    """
    return min(max(0.0, settings.initial_delay - runs_for), float(settings.initial_delay))


def _positive_or(value: int, default: int) -> int:
    return value if value > 0 else default
