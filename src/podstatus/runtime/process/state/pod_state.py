"""A pod and the attempts at its containers, as far as they are known; pure."""

import hashlib
from collections.abc import Sequence

import msgspec
from msgspec import structs

from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    NetworkMode,
    PodFacts,
    ResourceFacts,
    SandboxFacts,
    SandboxState,
)
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.runtime.port import RuntimePod
from podstatus.runtime.process.records.models import (
    ExitRecord,
    LaunchRecord,
    PodRecord,
    StartRecord,
)

NAME = "process"
START_ERROR = "StartError"
STATUS_UNKNOWN = "ContainerStatusUnknown"
_LOST_EXIT_CODE = 137


class ContainerAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at running a container."""

    launch: LaunchRecord
    started: StartRecord | None = None
    exit: ExitRecord | None = None
    message: str = ""
    """What it left as its last words."""
    resources: ResourceFacts | None = None
    """The limits in force."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.exit is not None

    @property
    def is_lost(self) -> bool:
        """Whether whoever looked after it was killed, so that nobody knows how it ended."""
        return self.exit is not None and self.exit.reason == STATUS_UNKNOWN

    @property
    def is_settled(self) -> bool:
        """Whether it is known what came of starting it."""
        return self.started is not None or self.has_ended


class PodState(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a pod; attempts newest first."""

    record: PodRecord
    is_ready: bool = False
    """Whether its shim can be asked."""
    was_ready: bool = False
    """Whether it ever could: before that, there is no sandbox to speak of."""
    attempts: tuple[ContainerAttempt, ...] = ()
    resources: ResourceFacts | None = None
    """What is in force for the pod as a whole."""

    @property
    def has_sandbox(self) -> bool:
        """Whether there is one, or was one, this or another."""
        return self.was_ready or self.record.sandbox_attempt > 0

    def find(self, id: str) -> ContainerAttempt | None:
        """This attempt."""
        return next((found for found in self.attempts if found.launch.id == id), None)

    def find_attempt(self, name: str, restart_count: int) -> ContainerAttempt | None:
        """The attempt with this number at a container, in the sandbox in use."""
        for found in self.attempts:
            launch = found.launch
            told = launch.container, launch.restart_count, launch.sandbox_id
            if told == (name, restart_count, self.record.sandbox_id):
                return found
        return None

    def find_unsettled(self, name: str) -> ContainerAttempt | None:
        """The attempt at a container that an agent before this one did not see start."""
        for found in self.attempts:
            is_here = found.launch.sandbox_id == self.record.sandbox_id
            if found.launch.container == name and is_here and not found.is_settled:
                return found
        return None

    def prunable_attempts(self, name: str) -> tuple[ContainerAttempt, ...]:
        """The attempts at a container that nobody needs: all but the newest two, if they ended."""
        kin = [found for found in self.attempts if found.launch.container == name]
        return tuple(found for found in kin[2:] if found.has_ended)

    def next_created_at(self, now: int) -> int:
        """When an attempt is made, later than all before it: the clock may have been set back.

        Attempts are told apart by it, and with a wrong order an old exit would be the newest.
        """
        return max(now, *(found.launch.created_at + 1 for found in self.attempts), 0)

    def with_attempt(self, attempt: ContainerAttempt) -> "PodState":
        """With another state of an attempt, or a new one."""
        others = [found for found in self.attempts if found.launch.id != attempt.launch.id]
        attempts = sorted((attempt, *others), key=_newest_first)
        return structs.replace(self, attempts=tuple(attempts))

    def without_attempt(self, id: str) -> "PodState":
        """Without this attempt."""
        kept = tuple(found for found in self.attempts if found.launch.id != id)
        return structs.replace(self, attempts=kept)


def _newest_first(attempt: ContainerAttempt) -> tuple[int, int, str]:
    launch = attempt.launch
    return -launch.created_at, -launch.restart_count, launch.id


def container_id(id: str) -> str:
    """The ID of an attempt as it is shown."""
    return f"{NAME}://{id}"


def folder_name(container_id: str) -> str:
    """The name of an attempt's folder, of its ID as it is shown; whatever else it is, no path."""
    return container_id.removeprefix(f"{NAME}://").replace("/", "")


def lost_exit_record(attempt: ContainerAttempt, noticed_at: int) -> ExitRecord:
    """The end of an attempt that nobody saw, in the kubelet's words for it.

    It is listed as an end: that nothing of it runs any more is known. As a state that is not
    known the kubelet would count its restart twice, and start it whatever its policy says.
    """
    started_at = attempt.started.started_at if attempt.started is not None else 0
    return ExitRecord(
        exit_code=_LOST_EXIT_CODE,
        reason=STATUS_UNKNOWN,
        message="The container could not be located when the pod was terminated",
        started_at=started_at,
        finished_at=max(noticed_at, started_at),  # by a clock that was set back, perhaps
    )


def runtime_pod(
    state: PodState, ips: Sequence[str], previous: tuple[PodState, RuntimePod] | None = None
) -> RuntimePod:
    """What is listed of a pod; with this runtime its addresses are those of its host.

    What was listed `previous` of attempts that have not changed is listed again: the same objects,
    so that a change of one container does not cost as much as all containers.
    """
    record = state.record
    # What a killed shim leaves ends in a moment; until then there is no point in another one.
    is_up = state.is_ready or any(not found.has_ended for found in state.attempts)
    sandbox = SandboxFacts(
        id=record.sandbox_id,
        state=SandboxState.READY if is_up else SandboxState.NOT_READY,
        attempt=record.sandbox_attempt,
        network=NetworkMode.POD if ips else NetworkMode.NODE,
        ip=ips[0] if ips and is_up else None,
    )
    facts = PodFacts(
        sandboxes=(sandbox,) if state.has_sandbox else (),
        containers=_all_facts(state, previous),
        ips=tuple(ips) if is_up else (),
        resources=state.resources,
    )
    return RuntimePod(uid=record.uid, namespace=record.namespace, name=record.name, facts=facts)


def _all_facts(
    state: PodState, previous: tuple[PodState, RuntimePod] | None
) -> tuple[ContainerFacts, ...]:
    known: dict[int, ContainerFacts] = {}
    if previous is not None:
        pairs = zip(previous[0].attempts, previous[1].facts.containers, strict=True)
        known = {id(attempt): facts for attempt, facts in pairs}
    found = []
    for attempt in state.attempts:
        active = attempt.launch.sandbox_id == state.record.sandbox_id
        facts = known.get(id(attempt))
        if facts is None or facts.active is not active:
            facts = _facts(attempt, active=active)
        found.append(facts)
    return tuple(found)


def _facts(attempt: ContainerAttempt, *, active: bool) -> ContainerFacts:
    launch, started, end = attempt.launch, attempt.started, attempt.exit
    began = started.started_at if started is not None else 0
    if end is not None and end.started_at:
        began = end.started_at
    return ContainerFacts(
        name=launch.container,
        state=_run_state(attempt),
        id=container_id(launch.id),
        created_at=_to_time(launch.created_at),
        started_at=_to_time(began),
        finished_at=_to_time(end.finished_at) if end is not None else UNSET_TIME,
        exit_code=end.exit_code if end is not None else 0,
        reason=end.reason if end is not None else "",
        message=attempt.message,
        image=launch.image,
        image_ref=_image_ref(launch.image),
        restart_count=launch.restart_count,
        resources=attempt.resources,
        active=active,
    )


def _run_state(attempt: ContainerAttempt) -> ContainerRunState:
    if attempt.exit is not None:
        return ContainerRunState.EXITED
    if attempt.started is not None:
        return ContainerRunState.RUNNING
    return ContainerRunState.CREATED


def _to_time(nanos: int) -> Time:
    return Time.from_unix_nanos(nanos) if nanos else UNSET_TIME


def _image_ref(image: str) -> str:
    """An image by a digest: of its name, since it is nothing but a label."""
    return f"{image}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"
