"""State of a pod and of its container attempts. Pure."""

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
    ProcessIdentity,
    StartRecord,
)

NAME = "process"
START_ERROR = "StartError"
STATUS_UNKNOWN = "ContainerStatusUnknown"
_LOST_EXIT_CODE = 137


class ContainerAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to run a container."""

    launch: LaunchRecord
    started: StartRecord | None = None
    exit: ExitRecord | None = None
    message: str = ""
    """Termination message."""
    resources: ResourceFacts | None = None
    """Resources in force."""

    @property
    def has_ended(self) -> bool:
        """Whether no process of it runs any more."""
        return self.exit is not None

    @property
    def is_lost(self) -> bool:
        """Whether its monitor was killed, so that its exit status is unknown."""
        return self.exit is not None and self.exit.reason == STATUS_UNKNOWN

    @property
    def is_settled(self) -> bool:
        """Whether the result of the start is known."""
        return self.started is not None or self.has_ended


class PodState(msgspec.Struct, frozen=True, kw_only=True):
    """State of a pod; attempts are sorted newest first."""

    record: PodRecord
    is_ready: bool = False
    """Whether its shim serves requests."""
    shim: ProcessIdentity | None = None
    """Its newest shim that served requests; None before that."""
    was_ready: bool = False
    """Whether its shim ever did; before that, the pod has no sandbox."""
    attempts: tuple[ContainerAttempt, ...] = ()
    resources: ResourceFacts | None = None
    """Resources in force for the pod as a whole."""

    @property
    def has_sandbox(self) -> bool:
        """Whether the pod has or had a sandbox."""
        return self.was_ready or self.record.sandbox_attempt > 0

    def find(self, id: str) -> ContainerAttempt | None:
        return next((attempt for attempt in self.attempts if attempt.launch.id == id), None)

    def find_attempt(self, name: str, restart_count: int) -> ContainerAttempt | None:
        """Return the container's attempt with this restart count in the current sandbox."""
        for attempt in self.attempts:
            launch = attempt.launch
            key = launch.container, launch.restart_count, launch.sandbox_id
            if key == (name, restart_count, self.record.sandbox_id):
                return attempt
        return None

    def find_unsettled(self, name: str) -> ContainerAttempt | None:
        """Return the container's attempt whose start a previous agent did not see complete."""
        for attempt in self.attempts:
            is_here = attempt.launch.sandbox_id == self.record.sandbox_id
            if attempt.launch.container == name and is_here and not attempt.is_settled:
                return attempt
        return None

    def prunable_attempts(self, name: str) -> tuple[ContainerAttempt, ...]:
        """Return the container's ended attempts, except for the newest two attempts."""
        same_container = [attempt for attempt in self.attempts if attempt.launch.container == name]
        return tuple(attempt for attempt in same_container[2:] if attempt.has_ended)

    def next_created_at(self, now: int) -> int:
        """Return the creation time of a new attempt: later than all others, whatever the clock
        says.

        Attempts are sorted by it; with a wrong order, an old exit would count as the newest.
        """
        return max(now, *(attempt.launch.created_at + 1 for attempt in self.attempts), 0)

    def with_attempt(self, attempt: ContainerAttempt) -> "PodState":
        """Return the state with an attempt added or replaced."""
        others = [a for a in self.attempts if a.launch.id != attempt.launch.id]
        attempts = sorted((attempt, *others), key=_newest_first)
        return structs.replace(self, attempts=tuple(attempts))

    def without_attempt(self, id: str) -> "PodState":
        attempts = tuple(a for a in self.attempts if a.launch.id != id)
        return structs.replace(self, attempts=attempts)


def _newest_first(attempt: ContainerAttempt) -> tuple[int, int, str]:
    launch = attempt.launch
    return -launch.created_at, -launch.restart_count, launch.id


def container_id(id: str) -> str:
    """Return the container ID as shown in the API."""
    return f"{NAME}://{id}"


def folder_name(container_id: str) -> str:
    """Return the folder name of a container ID; never contains a slash."""
    return container_id.removeprefix(f"{NAME}://").replace("/", "")


def lost_exit_record(attempt: ContainerAttempt, noticed_at: int) -> ExitRecord:
    """Return the exit record of an attempt whose monitor was killed, in the kubelet's words.

    It is listed as exited, since it is known that no process runs any more. For an unknown state,
    the kubelet would count its restart twice, and restart it regardless of its policy.
    """
    started_at = attempt.started.started_at if attempt.started is not None else 0
    return ExitRecord(
        exit_code=_LOST_EXIT_CODE,
        reason=STATUS_UNKNOWN,
        message="The container could not be located when the pod was terminated",
        started_at=started_at,
        finished_at=max(noticed_at, started_at),  # the clock may have been set back
    )


def runtime_pod(
    state: PodState, ips: Sequence[str], previous: tuple[PodState, RuntimePod] | None = None
) -> RuntimePod:
    """Return what the runtime lists for a pod; its IPs are those of the host.

    Facts of unchanged attempts are the same objects as in `previous`, so that a change of one
    container does not cost a rebuild of all.
    """
    record = state.record
    # What a killed shim leaves behind ends soon; until then a new sandbox is pointless.
    is_up = state.is_ready or any(not a.has_ended for a in state.attempts)
    sandbox = SandboxFacts(
        id=record.sandbox_id,
        state=SandboxState.READY if is_up else SandboxState.NOT_READY,
        attempt=record.sandbox_attempt,
        network=NetworkMode.NODE if record.host_network else NetworkMode.POD,
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
    reusable: dict[int, ContainerFacts] = {}
    if previous is not None:
        pairs = zip(previous[0].attempts, previous[1].facts.containers, strict=True)
        reusable = {id(attempt): facts for attempt, facts in pairs}
    result = []
    for attempt in state.attempts:
        active = attempt.launch.sandbox_id == state.record.sandbox_id
        facts = reusable.get(id(attempt))
        if facts is None or facts.active is not active:
            facts = _facts(attempt, active=active)
        result.append(facts)
    return tuple(result)


def _facts(attempt: ContainerAttempt, *, active: bool) -> ContainerFacts:
    launch, started, end = attempt.launch, attempt.started, attempt.exit
    started_at = started.started_at if started is not None else 0
    if end is not None and end.started_at:
        started_at = end.started_at
    return ContainerFacts(
        name=launch.container,
        state=_run_state(attempt),
        id=container_id(launch.id),
        created_at=_to_time(launch.created_at),
        started_at=_to_time(started_at),
        finished_at=_to_time(end.finished_at) if end is not None else UNSET_TIME,
        exit_code=end.exit_code if end is not None else 0,
        reason=end.reason if end is not None else "",
        message=attempt.message,
        image=launch.image,
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
