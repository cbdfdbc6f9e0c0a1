"""Probe thresholds: when consecutive checks become a result, and when the first check is due.

    outcomes   ✓ ✗ ✗ ✗ ✓ ✓      with failureThreshold 3, successThreshold 1
    results    T · · F T T

Every check at or beyond the threshold produces a result, also if it equals the previous one. An
unknown outcome neither counts nor interrupts a streak. Each container starts with an empty streak;
upstream continues that of the previous container, unless a probe caused the restart.

Upstream: doProbe, pkg/kubelet/prober/worker.go v1.36.4.
"""

from enum import Enum

import msgspec

from podstatus.kube.objects.containers import Probe


class ProbeType(Enum):
    """Type of a probe. The values are those of `ProbeResult.probe`."""

    STARTUP = "startup"
    """The other probes run only after it succeeds; if it fails, the container is restarted."""
    READINESS = "readiness"
    """Decides whether the container receives traffic."""
    LIVENESS = "liveness"
    """If it fails, the container is restarted."""


class CheckOutcome(Enum):
    """Outcome of a single check."""

    SUCCESS = "success"
    FAILURE = "failure"
    UNKNOWN = "unknown"
    """The check could not be made."""


class ProbeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a probe with defaults applied; times in seconds."""

    initial_delay: int
    period: int
    timeout: int
    successes: int
    failures: int


class Streak(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive checks of a container with the same outcome."""

    success: bool = False
    length: int = 0
    done: bool = False
    """The result for this container is final."""


class StreakResult(msgspec.Struct, frozen=True):
    """The streak after a check, and the probe's result."""

    streak: Streak
    result: bool | None
    """None: the threshold is not reached."""


def probe_settings(probe: Probe) -> ProbeSettings:
    """Settings with the API server's defaults, which static pod manifests may lack.

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
    """Add the outcome of a check to the streak.

    A failed liveness probe and any startup result are final: the container will be restarted, or
    has started.
    """
    if streak.done or outcome is CheckOutcome.UNKNOWN:
        return StreakResult(streak, None)
    success = outcome is CheckOutcome.SUCCESS
    length = streak.length + 1 if success is streak.success else 1
    if length < (settings.successes if success else settings.failures):
        return StreakResult(Streak(success=success, length=length), None)
    done = kind is ProbeType.STARTUP or (kind is ProbeType.LIVENESS and not success)
    return StreakResult(Streak(success=success, length=length, done=done), success)


def first_due(settings: ProbeSettings, runs_for: float) -> float:
    """Seconds until the first check of a container that has been running for `runs_for` seconds.

    At most the initial delay: `runs_for` can be negative if the wall clock was set back.
    """
    return min(max(0.0, settings.initial_delay - runs_for), float(settings.initial_delay))


def _positive_or(value: int, default: int) -> int:
    return value if value > 0 else default
