"""State of all pods, kept equal to the disk and to the running processes.

Nothing here blocks.
"""

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import structs

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ResourceFacts
from podstatus.runtime.port import RuntimePod
from podstatus.runtime.process.cgroups.enforcer import LimitEnforcer
from podstatus.runtime.process.logs.termination_message import termination_message
from podstatus.runtime.process.records.layout import ContainerFolder
from podstatus.runtime.process.records.models import LaunchRecord, PodRecord, ShimRecord
from podstatus.runtime.process.records.store import RecordStore
from podstatus.runtime.process.shim.processes import boot_id
from podstatus.runtime.process.state.exit_watcher import ExitWatcher
from podstatus.runtime.process.state.pod_state import (
    ContainerAttempt,
    PodState,
    lost_exit_record,
    runtime_pod,
)
from podstatus.runtime.process.state.process_identity import is_alive


class PodTable:
    """The pods by UID. Not thread-safe: for one event loop."""

    def __init__(
        self,
        records: RecordStore,
        host_ips: Callable[[], Sequence[str]],
        limits: LimitEnforcer,
        now: Callable[[], int],
    ) -> None:
        self._records = records
        self._host_ips = host_ips
        self._limits = limits
        self._now = now
        self._pods: dict[PodUID, PodState] = {}
        self._runtime_pods: dict[PodUID, tuple[PodState, RuntimePod]] = {}
        self._waiters: dict[PodUID, set[asyncio.Event]] = {}
        self.exits = ExitWatcher()
        self.changes = ChangeFeed()

    def load(self) -> None:
        """Load the records of previous agents. Raises RuntimeDownError."""
        for record in self._records.read_pods():
            was_ready = self._records.read_shim(record) is not None
            self._store(PodState(record=record, was_ready=was_ready))
            self.poll_shim(record.uid)
            for launch in self._records.read_launches(record.uid):
                self.add(record.uid, launch)

    def never_started(self) -> list[tuple[PodUID, str]]:
        """Return the attempts whose shim was killed before it took them up."""
        return [
            (uid, attempt.launch.id)
            for uid, state in self._pods.items()
            for attempt in state.attempts
            if attempt.is_lost and not self.was_started(uid, attempt)
        ]

    def was_started(self, uid: PodUID, attempt: ContainerAttempt) -> bool:
        """Return whether the command of an attempt may have been executed."""
        shim = self._records.read_last_shim(uid)
        # After a power loss, a missing file proves nothing: it may not have reached the disk.
        same_boot = shim is not None and shim.process.boot_id == boot_id()
        folder = self._records.pod_folder(uid).container(attempt.launch.id)
        return not same_boot or self._records.was_started(folder)

    def close(self) -> None:
        """Stop watching shims and monitors."""
        self.exits.close()

    def find(self, uid: PodUID) -> PodState | None:
        return self._pods.get(uid)

    def states(self) -> list[PodState]:
        return list(self._pods.values())

    def runtime_pods(self) -> list[RuntimePod]:
        """Return all listed pods; the same objects while nothing changes."""
        self.exits.poll()
        ips = self._host_ips()
        return [self._to_runtime_pod(state, ips) for state in self._pods.values()]

    def runtime_pod_list(self, uid: PodUID) -> list[RuntimePod]:
        """Return the listed pod as a list of one; empty if the pod does not exist."""
        self.exits.poll()
        state = self._pods.get(uid)
        return [] if state is None else [self._to_runtime_pod(state, self._host_ips())]

    @contextmanager
    def subscribe(self, uid: PodUID) -> Iterator[asyncio.Event]:
        """Provide an event that is set at every change of the pod."""
        event = asyncio.Event()
        waiters = self._waiters.setdefault(uid, set())
        waiters.add(event)
        try:
            yield event
        finally:
            waiters.discard(event)
            if not waiters:
                self._waiters.pop(uid, None)

    # Updates

    def set_sandbox(self, record: PodRecord) -> None:
        """Set a new sandbox of a pod; attempts in previous sandboxes are retained."""
        previous = self._pods.get(record.uid)
        attempts = previous.attempts if previous is not None else ()
        self._store(PodState(record=record, attempts=attempts))

    def poll_shim(self, uid: PodUID) -> bool:
        """Check whether the pod's shim serves requests; watch it if so."""
        state = self._pods[uid]
        if state.is_ready:
            return True
        shim = self._records.read_shim(state.record)
        if shim is None or state.record.stopped:
            return False
        sandbox_id = state.record.sandbox_id
        if not self.exits.watch(shim.process, lambda: self._on_shim_exit(uid, sandbox_id)):
            return False
        in_force = self._limits.actuated_pod_resources(uid, state.record.limits)
        self._store(
            structs.replace(
                state, is_ready=True, shim=shim.process, was_ready=True, resources=in_force
            )
        )
        return True

    def shim(self, uid: PodUID) -> ShimRecord | None:
        """Return the record of the pod's shim if it runs, else None."""
        state = self._pods.get(uid)
        shim = self._records.read_shim(state.record) if state is not None else None
        return shim if shim is not None and is_alive(shim.process) else None

    def set_stopped(self, record: PodRecord) -> None:
        """Mark the pod's sandbox as stopped."""
        state = self._pods[record.uid]
        self._store(structs.replace(state, record=record, is_ready=False))
        self.poll_attempts(record.uid)

    def add(self, uid: PodUID, launch: LaunchRecord) -> ContainerAttempt:
        attempt = ContainerAttempt(launch=launch, resources=self._actuated_resources(uid, launch))
        self._store(self._pods[uid].with_attempt(attempt))
        return self.poll_attempt(uid, launch.id)

    def poll_attempt(self, uid: PodUID, id: str) -> ContainerAttempt:
        """Read the records of an attempt and return its new state."""
        attempt = self._pods[uid].find(id)
        if attempt is None:
            raise KeyError(id)
        folder = self._records.pod_folder(uid).container(id)
        attempt = self._with_start(uid, attempt, folder)
        attempt = self._with_exit(uid, attempt, folder)
        self._replace(uid, attempt)
        return attempt

    def poll_attempts(self, uid: PodUID) -> None:
        """Read the records of all attempts that have not ended."""
        for attempt in self._pods[uid].attempts:
            if not attempt.has_ended:
                self.poll_attempt(uid, attempt.launch.id)

    def update_resources(self, record: PodRecord) -> None:
        """Read the resources in force after a complete or partial resize."""
        uid = record.uid
        pod_resources = self._limits.actuated_pod_resources(uid, record.limits)
        state = structs.replace(self._pods[uid], record=record, resources=pod_resources)
        for attempt in state.attempts:
            if not attempt.has_ended:
                resources = self._actuated_resources(uid, attempt.launch)
                state = state.with_attempt(structs.replace(attempt, resources=resources))
        if state != self._pods[uid]:
            self._store(state)

    def remove_attempt(self, uid: PodUID, id: str) -> None:
        if uid in self._pods:
            self._store(self._pods[uid].without_attempt(id))

    def remove(self, uid: PodUID) -> None:
        self._pods.pop(uid, None)
        self._runtime_pods.pop(uid, None)
        self._notify(uid)

    def _with_start(
        self, uid: PodUID, attempt: ContainerAttempt, directory: ContainerFolder
    ) -> ContainerAttempt:
        if attempt.started is not None or attempt.has_ended:
            return attempt
        started = self._records.read_started(directory)
        if started is None:
            return attempt
        id = attempt.launch.id
        # One that has already ended is found by its exit record, or is lost.
        self.exits.watch(started.monitor, lambda: self._on_monitor_exit(uid, id))
        return structs.replace(attempt, started=started)

    def _with_exit(
        self, uid: PodUID, attempt: ContainerAttempt, directory: ContainerFolder
    ) -> ContainerAttempt:
        if attempt.exit is not None:
            return attempt
        # In this order: a monitor writes its record before it ends.
        is_monitored = self._is_monitored(uid, attempt)
        end = self._records.read_exit(directory)
        if end is None and not is_monitored:
            end = self._records.write_exit(directory, lost_exit_record(attempt, self._now()))
        if end is None:
            return attempt
        message = termination_message(directory, attempt.launch, end)
        return structs.replace(attempt, exit=end, message=message)

    def _actuated_resources(self, uid: PodUID, launch: LaunchRecord) -> ResourceFacts:
        resized = self._records.read_resize(self._records.pod_folder(uid).container(launch.id))
        requested = launch.resources if resized is None else resized.resources
        return self._limits.actuated_resources(
            uid, launch.id, from_document(requested, ResourceRequirements)
        )

    def _is_monitored(self, uid: PodUID, attempt: ContainerAttempt) -> bool:
        """Return whether a monitor or shim is left that will record the exit."""
        if attempt.started is not None:
            return is_alive(attempt.started.monitor)
        shim = self.shim(uid)
        return shim is not None and attempt.launch.sandbox_id == shim.sandbox_id

    def _on_monitor_exit(self, uid: PodUID, id: str) -> None:
        state = self._pods.get(uid)
        if state is not None and state.find(id) is not None:
            self.poll_attempt(uid, id)

    def _on_shim_exit(self, uid: PodUID, sandbox_id: str) -> None:
        state = self._pods.get(uid)
        if state is not None and state.record.sandbox_id == sandbox_id:
            self._store(structs.replace(state, is_ready=False))
            self.poll_attempts(uid)

    def _replace(self, uid: PodUID, attempt: ContainerAttempt) -> None:
        state = self._pods[uid]
        if state.find(attempt.launch.id) != attempt:
            self._store(state.with_attempt(attempt))

    def _store(self, state: PodState) -> None:
        self._pods[state.record.uid] = state
        self._notify(state.record.uid)

    def _notify(self, uid: PodUID) -> None:
        self.changes.publish(uid)
        for event in self._waiters.get(uid, ()):
            event.set()

    def _to_runtime_pod(self, state: PodState, ips: Sequence[str]) -> RuntimePod:
        uid = state.record.uid
        cached = self._runtime_pods.get(uid)
        if cached is not None and cached[0] is state:
            return cached[1]
        listed = runtime_pod(state, ips, cached)
        self._runtime_pods[uid] = state, listed
        return listed


class ChangeFeed:
    """All subscriptions. Not thread-safe: for one event loop."""

    def __init__(self) -> None:
        self._subscriptions: weakref.WeakSet[_Subscription] = weakref.WeakSet()

    def subscribe(self) -> AsyncIterator[PodUID]:
        """Return a subscription to changes from now on; it never ends."""
        subscription = _Subscription()
        self._subscriptions.add(subscription)
        return subscription

    def publish(self, uid: PodUID) -> None:
        """Notify all subscriptions that this pod has changed."""
        for subscription in self._subscriptions:
            subscription.notify(uid)


class _Subscription(AsyncIterator[PodUID]):
    """Repeated changes of a pod are coalesced."""

    def __init__(self) -> None:
        self._pods: dict[PodUID, None] = {}
        self._available = asyncio.Event()

    def notify(self, uid: PodUID) -> None:
        self._pods[uid] = None
        self._available.set()

    async def __anext__(self) -> PodUID:
        while not self._pods:
            self._available.clear()
            await self._available.wait()
        uid = next(iter(self._pods))
        del self._pods[uid]
        return uid
