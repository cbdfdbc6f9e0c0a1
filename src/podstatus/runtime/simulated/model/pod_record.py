"""The stored state of a simulated pod: its sandboxes and container attempts."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

import msgspec
from msgspec import structs

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    NetworkMode,
    PodFacts,
    SandboxFacts,
    SandboxState,
)
from podstatus.kube.objects.usage import MemoryUsage, Usage
from podstatus.runtime.cpu_and_memory_limits import CgroupLimits
from podstatus.runtime.cpu_and_memory_limits import limits_to_facts as limit_facts
from podstatus.runtime.port import RuntimePod
from podstatus.runtime.simulated.model.container_timeline import (
    SimulatedAttempt,
    attempt_facts,
    cpu_seconds,
    find_exit,
    has_ended,
    probe_outcomes,
)


class SimulatedSandbox(msgspec.Struct, frozen=True, kw_only=True):
    """The sandbox that the containers of a pod share."""

    id: str
    attempt: int = 0
    ip: str | None = None
    """None for a pod in the host network."""
    ready: bool = True


class SimulatedPodRecord(msgspec.Struct, frozen=True, kw_only=True):
    """State of one pod; sandboxes and attempts are sorted newest first."""

    format: Literal[1] = 1
    uid: PodUID
    namespace: str
    name: str
    sandboxes: tuple[SimulatedSandbox, ...] = ()
    attempts: tuple[SimulatedAttempt, ...] = ()
    limits: CgroupLimits | None = None
    """Resources of the pod as a whole; None in records of older agents."""

    @property
    def sandbox(self) -> SimulatedSandbox | None:
        """The newest sandbox if it is ready, else None."""
        return next((sandbox for sandbox in self.sandboxes[:1] if sandbox.ready), None)

    def find(self, container_id: str) -> SimulatedAttempt | None:
        return next((a for a in self.attempts if a.id == container_id), None)

    def find_attempt(self, name: str, restart_count: int) -> SimulatedAttempt | None:
        """Return the container's attempt with this restart count in the newest sandbox, or None."""
        in_use = self.sandboxes[0].id if self.sandboxes else ""
        for attempt in self.attempts:
            if attempt.name == name and (attempt.restart_count, attempt.sandbox) == (
                restart_count,
                in_use,
            ):
                return attempt
        return None

    def with_sandbox(self, sandbox: SimulatedSandbox, limits: CgroupLimits) -> "SimulatedPodRecord":
        """Return the record with a new sandbox and its limits; one older sandbox is retained."""
        return structs.replace(self, sandboxes=(sandbox, *self.sandboxes[:1]), limits=limits)

    def with_attempt(self, attempt: SimulatedAttempt) -> "SimulatedPodRecord":
        """Return the record with a new attempt; one older attempt per container is retained."""
        same_container = [a for a in self.attempts if a.name == attempt.name]
        pruned = {a.id for a in same_container[1:] if has_ended(a, attempt.began)}
        retained = [a for a in self.attempts if a.id not in pruned]
        return structs.replace(self, attempts=(attempt, *retained))

    def with_replaced_attempt(self, attempt: SimulatedAttempt) -> "SimulatedPodRecord":
        """Return the record with the attempt of the same ID replaced."""
        attempts = (attempt if a.id == attempt.id else a for a in self.attempts)
        return structs.replace(self, attempts=tuple(attempts))

    def without_attempt(self, container_id: str) -> "SimulatedPodRecord":
        retained = (attempt for attempt in self.attempts if attempt.id != container_id)
        return structs.replace(self, attempts=tuple(retained))

    def with_stopped_sandbox(self) -> "SimulatedPodRecord":
        """Return the record with all sandboxes not ready."""
        stopped = (structs.replace(sandbox, ready=False) for sandbox in self.sandboxes)
        return structs.replace(self, sandboxes=tuple(stopped))

    def running_attempts(self, now: int) -> tuple[SimulatedAttempt, ...]:
        """Return the attempts that have not ended."""
        return tuple(attempt for attempt in self.attempts if not has_ended(attempt, now))


class ListedAttempt(msgspec.Struct, frozen=True):
    """The facts last listed for an attempt."""

    attempt: SimulatedAttempt
    facts: ContainerFacts

    def is_current(self, attempt: SimulatedAttempt, now: int, *, active: bool) -> bool:
        """Return whether the facts are still those of the attempt at `now`."""
        return (
            self.attempt is attempt
            and self.facts.active is active
            and (self.facts.state is ContainerRunState.EXITED) is has_ended(attempt, now)
        )


NO_LISTED_ATTEMPTS: Final[Mapping[str, ListedAttempt]] = MappingProxyType({})


def runtime_pod(
    record: SimulatedPodRecord, now: int, listed: Mapping[str, ListedAttempt] = NO_LISTED_ATTEMPTS
) -> tuple[RuntimePod, dict[str, ListedAttempt]]:
    """Return the listed pod, and its listed attempts by ID for reuse by the next call.

    Facts of unchanged attempts are the same objects as in `listed`, so that a change of one
    container does not cost a rebuild of all.
    """
    in_use = record.sandboxes[0].id if record.sandboxes else ""
    sandbox = record.sandbox
    by_id: dict[str, ListedAttempt] = {}
    containers = []
    for attempt in record.attempts:
        active, entry = attempt.sandbox == in_use, listed.get(attempt.id)
        if entry is None or not entry.is_current(attempt, now, active=active):
            entry = ListedAttempt(attempt, attempt_facts(attempt, now, active=active))
        by_id[attempt.id] = entry
        containers.append(entry.facts)
    facts = PodFacts(
        sandboxes=tuple(_sandbox_facts(s) for s in record.sandboxes),
        containers=tuple(containers),
        ips=(sandbox.ip,) if sandbox is not None and sandbox.ip else (),
        resources=None if record.limits is None else limit_facts(record.limits),
    )
    pod = RuntimePod(uid=record.uid, namespace=record.namespace, name=record.name, facts=facts)
    return pod, by_id


def next_exit(record: SimulatedPodRecord, now: int) -> int | None:
    """Return when the next container ends; None if none will."""
    ends = (find_exit(attempt) for attempt in record.attempts)
    return min((end.at for end in ends if end is not None and end.at > now), default=None)


def next_change(record: SimulatedPodRecord, now: int, end: int | None) -> int | None:
    """Return when the pod's facts or probe results change next: `end`, or a probe step."""
    times = [probe_outcomes(a, now)[1] for a in record.attempts if a.probes]
    times.append(end)
    return min((at for at in times if at is not None), default=None)


def pod_usage(record: SimulatedPodRecord, now: int) -> Usage:
    """Return the total usage of the pod's containers."""
    running = record.running_attempts(now)
    return Usage(
        at=now,
        cpu_seconds=sum(cpu_seconds(attempt, now) for attempt in record.attempts),
        cpu_cores=sum(attempt.cpu_cores for attempt in running),
        memory_bytes=sum(attempt.memory_bytes for attempt in running),
        disk_bytes=0,
        pids=len(running),
        processes=len(running),
        memory=_memory(sum(attempt.memory_bytes for attempt in running)),
    )


def container_usage(record: SimulatedPodRecord, now: int) -> dict[str, Usage]:
    """Return the usage of each running container, by name."""
    return {
        attempt.name: Usage(
            at=now,
            cpu_seconds=cpu_seconds(attempt, now),
            cpu_cores=attempt.cpu_cores,
            memory_bytes=attempt.memory_bytes,
            disk_bytes=0,
            pids=1,
            processes=1,
            memory=_memory(attempt.memory_bytes),
        )
        for attempt in record.running_attempts(now)
    }


def _memory(count: int) -> MemoryUsage:
    """A simulated container has anonymous memory only."""
    return MemoryUsage(usage_bytes=count, rss_bytes=count)


def _sandbox_facts(sandbox: SimulatedSandbox) -> SandboxFacts:
    return SandboxFacts(
        id=sandbox.id,
        state=SandboxState.READY if sandbox.ready else SandboxState.NOT_READY,
        attempt=sandbox.attempt,
        network=NetworkMode.POD if sandbox.ip else NetworkMode.NODE,
        ip=sandbox.ip if sandbox.ready else None,
    )
