"""State of a simulated container, computed from its script and the stop requests it received.

A container ends because its time is over; nothing has to run for that. An attempt that was stored
and is read back later has therefore ended when it should have.
"""

from typing import Any, Literal

import msgspec

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.runtime.cpu_and_memory_limits import container_facts
from podstatus.runtime.simulated.model.script import KILLED_EXIT_CODE, START_ERROR, Script

ProbeName = Literal["startup", "readiness", "liveness"]
STARTUP: ProbeName = "startup"
READINESS: ProbeName = "readiness"
LIVENESS: ProbeName = "liveness"

_START_ERROR_EXIT_CODE = 128
"""Exit code that runtimes report for a container that could not be executed."""


class SimulatedAttempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt to run a container; times in nanoseconds since the Unix epoch."""

    id: str
    name: str
    sandbox: str
    restart_count: int
    image: str
    image_ref: str
    script: Script
    began: int
    probes: tuple[ProbeName, ...] = ()
    """Probes that the container's spec defines."""
    cpu_cores: float = 0.0
    memory_bytes: int = 0
    resources: dict[str, Any] = {}
    """Resources that were applied, as a JSON document."""
    start_error: str = ""
    """Why the attempt could not run; empty if it could."""
    stop_at: int | None = msgspec.field(default=None, name="asked")
    """When the stop signal was sent."""
    kill_at: int | None = msgspec.field(default=None, name="forced")
    """When the container is killed if it still runs."""


class ContainerExit(msgspec.Struct, frozen=True):
    """When and how an attempt ends."""

    at: int
    exit_code: int
    reason: str
    message: str = ""


def find_exit(attempt: SimulatedAttempt) -> ContainerExit | None:
    """Return when and how the attempt ends unless it is stopped earlier; None if never."""
    script = attempt.script
    if attempt.stop_at is attempt.kill_at is script.run is None and not attempt.start_error:
        return None  # fast path: each change evaluates all attempts, and most run until stopped
    if attempt.start_error:
        return ContainerExit(
            attempt.began, _START_ERROR_EXIT_CODE, START_ERROR, attempt.start_error
        )
    by_itself = _add_nanos(attempt.began, script.run)
    when_stopped = _add_nanos(attempt.stop_at, script.stop)
    when_killed = _add_nanos(attempt.kill_at, script.kill)
    moments = [at for at in (by_itself, when_stopped, when_killed) if at is not None]
    if not moments:
        return None
    at = min(moments)
    if at == by_itself:
        reason = "OOMKilled" if script.oom else _reason(script.exit)
        return ContainerExit(at, script.exit, reason, script.message)
    if at == when_stopped:
        return ContainerExit(at, script.stop_exit, _reason(script.stop_exit), script.message)
    return ContainerExit(at, KILLED_EXIT_CODE, _reason(KILLED_EXIT_CODE))


def has_ended(attempt: SimulatedAttempt, now: int) -> bool:
    """Return whether the attempt has ended at `now`."""
    end = find_exit(attempt)
    return end is not None and end.at <= now


def attempt_facts(attempt: SimulatedAttempt, now: int, *, active: bool) -> ContainerFacts:
    """Return what the runtime lists for the attempt."""
    end = find_exit(attempt)
    ended = end if end is not None and end.at <= now else None
    return ContainerFacts(
        name=attempt.name,
        state=ContainerRunState.RUNNING if ended is None else ContainerRunState.EXITED,
        id=attempt.id,
        created_at=Time.from_unix_nanos(attempt.began),
        # As in containerd: the start time of a container that never ran is the Unix epoch.
        started_at=Time.from_unix_nanos(0 if attempt.start_error else attempt.began),
        finished_at=UNSET_TIME if ended is None else Time.from_unix_nanos(ended.at),
        exit_code=0 if ended is None else ended.exit_code,
        reason="" if ended is None else ended.reason,
        message="" if ended is None else ended.message,
        image=attempt.image,
        image_ref=attempt.image_ref,
        restart_count=attempt.restart_count,
        resources=container_facts(from_document(attempt.resources, ResourceRequirements)),
        active=active,
    )


def probe_outcomes(attempt: SimulatedAttempt, now: int) -> tuple[dict[ProbeName, bool], int | None]:
    """Return the probe results, and when they may change next; empty for an ended attempt.

    While the startup probe has not passed, the other probes have no result. Upstream: doProbe,
    prober/worker.go v1.36.4.
    """
    if not attempt.probes or has_ended(attempt, now):
        return {}, None
    states = {probe: _probe_at(attempt, probe, now) for probe in attempt.probes}
    if STARTUP in states and states[STARTUP][0] is not True:
        states = {STARTUP: states[STARTUP]}
    results = {probe: result for probe, (result, _) in states.items() if result is not None}
    changes = [until for _, until in states.values() if until is not None]
    return results, min(changes, default=None)


def cpu_seconds(attempt: SimulatedAttempt, now: int) -> float:
    """Return the CPU time used so far, in core-seconds."""
    end = find_exit(attempt)
    until = now if end is None else min(now, end.at)
    return max(0, until - attempt.began) / 1e9 * attempt.cpu_cores


def _probe_at(
    attempt: SimulatedAttempt, probe: ProbeName, now: int
) -> tuple[bool | None, int | None]:
    script, began = attempt.script, attempt.began
    timeline = {READINESS: script.ready, STARTUP: script.started, LIVENESS: script.alive}[probe]
    if probe == READINESS and attempt.stop_at is not None and script.stop_ready is not None:
        timeline, began = script.stop_ready, attempt.stop_at
    result, ends = timeline.at(max(0, now - began))
    return result, None if ends is None else began + ends


def _add_nanos(at: int | None, nanos: int | None) -> int | None:
    return None if at is None or nanos is None else at + nanos


def _reason(exit_code: int) -> str:
    return "Error" if exit_code else "Completed"
