"""A simulated pod as it is kept: its sandboxes, the attempts at its containers, and no more."""

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
from podstatus.kube.objects.usage import Usage
from podstatus.runtime.port import RuntimePod
from podstatus.runtime.resource_limits import CgroupLimits
from podstatus.runtime.resource_limits import limits_to_facts as limit_facts
from podstatus.runtime.simulated.model.container import (
    SimulatedAttempt,
    attempt_facts,
    cpu_seconds,
    find_exit,
    has_ended,
    probe_outcomes,
)


class SimulatedSandbox(msgspec.Struct, frozen=True, kw_only=True):
    """What the containers of a pod share."""

    id: str
    attempt: int = 0
    ip: str | None = None
    """None in the network of the node."""
    ready: bool = True


class SimulatedPodRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All there is of a pod; sandboxes and attempts newest first."""

    format: Literal[1] = 1
    uid: PodUID
    namespace: str
    name: str
    sandboxes: tuple[SimulatedSandbox, ...] = ()
    attempts: tuple[SimulatedAttempt, ...] = ()
    limits: CgroupLimits | None = None
    """What the pod as a whole was given; None if an older agent did not say."""

    @property
    def sandbox(self) -> SimulatedSandbox | None:
        """The one in use, if it is ready."""
        return next((sandbox for sandbox in self.sandboxes[:1] if sandbox.ready), None)

    def find(self, container_id: str) -> SimulatedAttempt | None:
        """This attempt."""
        return next((found for found in self.attempts if found.id == container_id), None)

    def find_attempt(self, name: str, restart_count: int) -> SimulatedAttempt | None:
        """The attempt with this number at a container, in the sandbox in use."""
        in_use = self.sandboxes[0].id if self.sandboxes else ""
        for found in self.attempts:
            if found.name == name and (found.restart_count, found.sandbox) == (
                restart_count,
                in_use,
            ):
                return found
        return None

    def with_sandbox(self, sandbox: SimulatedSandbox, limits: CgroupLimits) -> "SimulatedPodRecord":
        """With a new sandbox, given these; of the older ones the newest is kept."""
        return structs.replace(self, sandboxes=(sandbox, *self.sandboxes[:1]), limits=limits)

    def with_attempt(self, attempt: SimulatedAttempt) -> "SimulatedPodRecord":
        """With a new attempt; of the older ones at the same container the newest is kept."""
        kin = [found for found in self.attempts if found.name == attempt.name]
        forgotten = {found.id for found in kin[1:] if has_ended(found, attempt.began)}
        kept = [found for found in self.attempts if found.id not in forgotten]
        return structs.replace(self, attempts=(attempt, *kept))

    def with_replaced_attempt(self, attempt: SimulatedAttempt) -> "SimulatedPodRecord":
        """With another state of an attempt."""
        swapped = (attempt if found.id == attempt.id else found for found in self.attempts)
        return structs.replace(self, attempts=tuple(swapped))

    def without_attempt(self, container_id: str) -> "SimulatedPodRecord":
        """Without this attempt."""
        kept = (found for found in self.attempts if found.id != container_id)
        return structs.replace(self, attempts=tuple(kept))

    def with_stopped_sandbox(self) -> "SimulatedPodRecord":
        """With no sandbox ready."""
        over = (structs.replace(sandbox, ready=False) for sandbox in self.sandboxes)
        return structs.replace(self, sandboxes=tuple(over))

    def running_attempts(self, now: int) -> tuple[SimulatedAttempt, ...]:
        """The attempts that have not ended."""
        return tuple(found for found in self.attempts if not has_ended(found, now))


class ListedAttempt(msgspec.Struct, frozen=True):
    """What was listed of an attempt."""

    attempt: SimulatedAttempt
    facts: ContainerFacts

    def is_current(self, attempt: SimulatedAttempt, now: int, *, active: bool) -> bool:
        """Whether the same is to be listed of an attempt now."""
        return (
            self.attempt is attempt
            and self.facts.active is active
            and (self.facts.state is ContainerRunState.EXITED) is has_ended(attempt, now)
        )


NO_LISTED_ATTEMPTS: Final[Mapping[str, ListedAttempt]] = MappingProxyType({})


def runtime_pod(
    record: SimulatedPodRecord, now: int, listed: Mapping[str, ListedAttempt] = NO_LISTED_ATTEMPTS
) -> tuple[RuntimePod, dict[str, ListedAttempt]]:
    """What the runtime lists of it, and the same by attempt: the next list is made from that.

    Attempts that have not changed are the same objects in both lists, so that a change of one
    container does not cost as much as all containers.
    """
    in_use = record.sandboxes[0].id if record.sandboxes else ""
    sandbox = record.sandbox
    by_id: dict[str, ListedAttempt] = {}
    containers = []
    for attempt in record.attempts:
        active, before = attempt.sandbox == in_use, listed.get(attempt.id)
        if before is None or not before.is_current(attempt, now, active=active):
            before = ListedAttempt(attempt, attempt_facts(attempt, now, active=active))
        by_id[attempt.id] = before
        containers.append(before.facts)
    facts = PodFacts(
        sandboxes=tuple(_sandbox_facts(found) for found in record.sandboxes),
        containers=tuple(containers),
        ips=(sandbox.ip,) if sandbox is not None and sandbox.ip else (),
        resources=None if record.limits is None else limit_facts(record.limits),
    )
    pod = RuntimePod(uid=record.uid, namespace=record.namespace, name=record.name, facts=facts)
    return pod, by_id


def next_exit(record: SimulatedPodRecord, now: int) -> int | None:
    """When the next of its containers ends, if one does."""
    ends = (find_exit(attempt) for attempt in record.attempts)
    return min((end.at for end in ends if end is not None and end.at > now), default=None)


def next_change(record: SimulatedPodRecord, now: int, end: int | None) -> int | None:
    """When something of it is otherwise: the next end, or what a probe says."""
    moments = [probe_outcomes(a, now)[1] for a in record.attempts if a.probes]
    moments.append(end)
    return min((at for at in moments if at is not None), default=None)


def pod_usage(record: SimulatedPodRecord, now: int) -> Usage:
    """What its containers use."""
    running = record.running_attempts(now)
    return Usage(
        at=now,
        cpu_seconds=sum(cpu_seconds(attempt, now) for attempt in record.attempts),
        cpu_cores=sum(attempt.cpu_cores for attempt in running),
        memory_bytes=sum(attempt.memory_bytes for attempt in running),
        disk_bytes=0,
        pids=len(running),
    )


def container_usage(record: SimulatedPodRecord, now: int) -> dict[str, Usage]:
    """What each of its containers that run uses."""
    return {
        attempt.name: Usage(
            at=now,
            cpu_seconds=cpu_seconds(attempt, now),
            cpu_cores=attempt.cpu_cores,
            memory_bytes=attempt.memory_bytes,
            disk_bytes=0,
            pids=1,
        )
        for attempt in record.running_attempts(now)
    }


def _sandbox_facts(sandbox: SimulatedSandbox) -> SandboxFacts:
    return SandboxFacts(
        id=sandbox.id,
        state=SandboxState.READY if sandbox.ready else SandboxState.NOT_READY,
        attempt=sandbox.attempt,
        network=NetworkMode.POD if sandbox.ip else NetworkMode.NODE,
        ip=sandbox.ip if sandbox.ready else None,
    )
