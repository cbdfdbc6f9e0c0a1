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
from podstatus.runtime.resource_limits import Limits
from podstatus.runtime.resource_limits import facts_of as limit_facts
from podstatus.runtime.simulated.model.container import (
    Attempt,
    cpu_seconds,
    facts_of,
    find_end,
    has_ended,
    probe_verdicts,
)


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """What the containers of a pod share."""

    id: str
    attempt: int = 0
    ip: str | None = None
    """None in the network of the node."""
    ready: bool = True


class PodRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All there is of a pod; sandboxes and attempts newest first."""

    format: Literal[1] = 1
    uid: PodUID
    namespace: str
    name: str
    sandboxes: tuple[Sandbox, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    limits: Limits | None = None
    """What the pod as a whole was given; None if an older agent did not say."""

    @property
    def sandbox(self) -> Sandbox | None:
        """The one in use, if it is ready."""
        return next((sandbox for sandbox in self.sandboxes[:1] if sandbox.ready), None)

    def find(self, container_id: str) -> Attempt | None:
        """This attempt."""
        return next((found for found in self.attempts if found.id == container_id), None)

    def find_attempt(self, name: str, restart_count: int) -> Attempt | None:
        """The attempt with this number at a container, in the sandbox in use."""
        in_use = self.sandboxes[0].id if self.sandboxes else ""
        for found in self.attempts:
            if found.name == name and (found.restart_count, found.sandbox) == (
                restart_count,
                in_use,
            ):
                return found
        return None

    def with_sandbox(self, sandbox: Sandbox, limits: Limits) -> "PodRecord":
        """With a new sandbox, given these; of the older ones the newest is kept."""
        return structs.replace(self, sandboxes=(sandbox, *self.sandboxes[:1]), limits=limits)

    def with_attempt(self, attempt: Attempt) -> "PodRecord":
        """With a new attempt; of the older ones at the same container the newest is kept."""
        kin = [found for found in self.attempts if found.name == attempt.name]
        forgotten = {found.id for found in kin[1:] if has_ended(found, attempt.began)}
        kept = [found for found in self.attempts if found.id not in forgotten]
        return structs.replace(self, attempts=(attempt, *kept))

    def replacing(self, attempt: Attempt) -> "PodRecord":
        """With another state of an attempt."""
        swapped = (attempt if found.id == attempt.id else found for found in self.attempts)
        return structs.replace(self, attempts=tuple(swapped))

    def without_attempt(self, container_id: str) -> "PodRecord":
        """Without this attempt."""
        kept = (found for found in self.attempts if found.id != container_id)
        return structs.replace(self, attempts=tuple(kept))

    def stopped(self) -> "PodRecord":
        """With no sandbox ready."""
        over = (structs.replace(sandbox, ready=False) for sandbox in self.sandboxes)
        return structs.replace(self, sandboxes=tuple(over))

    def running(self, now: int) -> tuple[Attempt, ...]:
        """The attempts that have not ended."""
        return tuple(found for found in self.attempts if not has_ended(found, now))


class Shown(msgspec.Struct, frozen=True):
    """What was listed of an attempt."""

    attempt: Attempt
    facts: ContainerFacts

    def is_right(self, attempt: Attempt, now: int, *, active: bool) -> bool:
        """Whether the same is to be listed of an attempt now."""
        return (
            self.attempt is attempt
            and self.facts.active is active
            and (self.facts.state is ContainerRunState.EXITED) is has_ended(attempt, now)
        )


NOTHING_SHOWN: Final[Mapping[str, Shown]] = MappingProxyType({})


def runtime_pod(
    record: PodRecord, now: int, shown: Mapping[str, Shown] = NOTHING_SHOWN
) -> tuple[RuntimePod, dict[str, Shown]]:
    """What the runtime lists of it, and the same by attempt: the next list is made from that.

    Attempts that have not changed are the same objects in both lists, so that a change of one
    container does not cost as much as all containers.
    """
    in_use = record.sandboxes[0].id if record.sandboxes else ""
    sandbox = record.sandbox
    by_id: dict[str, Shown] = {}
    containers = []
    for attempt in record.attempts:
        active, before = attempt.sandbox == in_use, shown.get(attempt.id)
        if before is None or not before.is_right(attempt, now, active=active):
            before = Shown(attempt, facts_of(attempt, now, active=active))
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


def next_end(record: PodRecord, now: int) -> int | None:
    """When the next of its containers ends, if one does."""
    ends = (find_end(attempt) for attempt in record.attempts)
    return min((end.at for end in ends if end is not None and end.at > now), default=None)


def next_moment(record: PodRecord, now: int, end: int | None) -> int | None:
    """When something of it is otherwise: the next end, or what a probe says."""
    moments = [probe_verdicts(a, now)[1] for a in record.attempts if a.probes]
    moments.append(end)
    return min((at for at in moments if at is not None), default=None)


def pod_usage(record: PodRecord, now: int) -> Usage:
    """What its containers use."""
    running = record.running(now)
    return Usage(
        at=now,
        cpu_seconds=sum(cpu_seconds(attempt, now) for attempt in record.attempts),
        cpu_cores=sum(attempt.cpu_cores for attempt in running),
        memory_bytes=sum(attempt.memory_bytes for attempt in running),
        disk_bytes=0,
        pids=len(running),
    )


def container_usage(record: PodRecord, now: int) -> dict[str, Usage]:
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
        for attempt in record.running(now)
    }


def _sandbox_facts(sandbox: Sandbox) -> SandboxFacts:
    return SandboxFacts(
        id=sandbox.id,
        state=SandboxState.READY if sandbox.ready else SandboxState.NOT_READY,
        attempt=sandbox.attempt,
        network=NetworkMode.POD if sandbox.ip else NetworkMode.NODE,
        ip=sandbox.ip if sandbox.ready else None,
    )
