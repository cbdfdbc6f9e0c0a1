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


class Kind(Enum):
    """What a probe is for. The values are those of `ProbeResult.probe`."""

    STARTUP = "startup"
    """Until it succeeds, the other two are not run; if it fails, the container is restarted."""
    READINESS = "readiness"
    """Whether the container is to be given work."""
    LIVENESS = "liveness"
    """If it fails, the container is restarted."""


class Outcome(Enum):
    """What one check came to."""

    SUCCESS = "success"
    FAILURE = "failure"
    UNKNOWN = "unknown"
    """It could not be made."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a probe, none of them missing."""

    initial_delay: int
    period: int
    timeout: int
    successes: int
    failures: int


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The checks of one container so far: how many in a row came to the same."""

    success: bool = False
    length: int = 0
    on_hold: bool = False
    """There is nothing more to find out about this container."""


class Counted(msgspec.Struct, frozen=True):
    """The row with one more check, and what it amounts to."""

    row: Row
    verdict: bool | None
    """None: nothing changes yet."""


def rules_of(probe: Probe) -> Rules:
    """The numbers as the API server would have filled them in: manifests of our own may lack them.

    Upstream: SetDefaults_Probe, pkg/apis/core/v1/defaults.go v1.36.4.
    """
    return Rules(
        initial_delay=max(0, probe.initial_delay_seconds),
        period=_or(probe.period_seconds, 10),
        timeout=_or(probe.timeout_seconds, 1),
        successes=_or(probe.success_threshold, 1),
        failures=_or(probe.failure_threshold, 3),
    )


def count(kind: Kind, rules: Rules, row: Row, outcome: Outcome) -> Counted:
    """One check more.

    After a failed liveness probe, and after any verdict on the start, the container is left
    alone: it will be restarted, or has started.
    """
    if row.on_hold or outcome is Outcome.UNKNOWN:
        return Counted(row, None)
    success = outcome is Outcome.SUCCESS
    length = row.length + 1 if success is row.success else 1
    if length < (rules.successes if success else rules.failures):
        return Counted(Row(success=success, length=length), None)
    on_hold = kind is Kind.STARTUP or (kind is Kind.LIVENESS and not success)
    return Counted(Row(success=success, length=length, on_hold=on_hold), success)


def first_due(rules: Rules, runs_for: float) -> float:
    """In how many seconds the first check is due, of a container that runs for so long.

    The age is by a clock that may have been set: nobody waits for longer than the whole delay.
    """
    return min(max(0.0, rules.initial_delay - runs_for), float(rules.initial_delay))


def _or(given: int, default: int) -> int:
    return given if given > 0 else default
