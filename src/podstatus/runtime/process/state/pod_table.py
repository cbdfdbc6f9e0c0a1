"""What is known of all pods, kept equal to the disk and to the processes there are.

Nothing in here waits.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from msgspec import structs

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ResourceFacts
from podstatus.runtime.port import RuntimePod
from podstatus.runtime.process.logs.termination_message import termination_message
from podstatus.runtime.process.records.layout import ContainerFolder
from podstatus.runtime.process.records.models import Launch, PodRecord, ShimRecord
from podstatus.runtime.process.records.store import Shelf
from podstatus.runtime.process.state.change_feed import Hints
from podstatus.runtime.process.state.exit_watcher import Ends
from podstatus.runtime.process.state.pod_state import Attempt, PodState, lost, runtime_pod
from podstatus.runtime.process.state.process_identity import boot_id, is_alive
from podstatus.runtime.resource_limits import Limits


class InForce(Protocol):
    """Says which limits hold."""

    def in_force(self, uid: PodUID, id: str, told: ResourceRequirements) -> ResourceFacts:
        """For an attempt that was given these."""

    def pod_in_force(self, uid: PodUID, told: Limits | None) -> ResourceFacts | None:
        """For a pod that was given these."""


class Book:
    """The pods, by UID. For one event loop."""

    def __init__(
        self,
        shelf: Shelf,
        host_ips: Callable[[], Sequence[str]],
        limits: InForce,
        now: Callable[[], int],
    ) -> None:
        self._shelf = shelf
        self._host_ips = host_ips
        self._limits = limits
        self._now = now
        self._pods: dict[PodUID, PodState] = {}
        self._listed: dict[PodUID, tuple[PodState, RuntimePod]] = {}
        self._waiting: dict[PodUID, set[asyncio.Event]] = {}
        self.ends = Ends()
        self.hints = Hints()

    def open(self) -> None:
        """Find out what agents before this one left. Raises RuntimeDownError."""
        for record in self._shelf.read_pods():
            was_ready = self._shelf.read_shim(record) is not None
            self._put(PodState(record=record, was_ready=was_ready))
            self.look_for_shim(record.uid)
            for launch in self._shelf.read_launches(record.uid):
                self.add(record.uid, launch)

    def never_begun(self) -> list[tuple[PodUID, str]]:
        """The attempts that were asked of a shim that was killed before anything ran."""
        return [
            (uid, attempt.launch.id)
            for uid, state in self._pods.items()
            for attempt in state.attempts
            if attempt.is_lost and not self.has_begun(uid, attempt)
        ]

    def has_begun(self, uid: PodUID, attempt: Attempt) -> bool:
        """Whether the command of an attempt may have been executed."""
        shim = self._shelf.read_last_shim(uid)
        # What was not on the disk when the machine lost its power proves nothing.
        was_lately = shim is not None and shim.process.boot_id == boot_id()
        place = self._shelf.folder(uid).container(attempt.launch.id)
        return not was_lately or self._shelf.has_begun(place)

    def close(self) -> None:
        """Watch nobody any more."""
        self.ends.close()

    def find(self, uid: PodUID) -> PodState | None:
        """What is known of a pod."""
        return self._pods.get(uid)

    def states(self) -> list[PodState]:
        """What is known of all pods."""
        return list(self._pods.values())

    def listed(self) -> list[RuntimePod]:
        """What is listed: the same objects as long as nothing changes."""
        self.ends.look()
        ips = self._host_ips()
        return [self._list(state, ips) for state in self._pods.values()]

    def listed_one(self, uid: PodUID) -> list[RuntimePod]:
        """What is listed of one pod, if it is there."""
        self.ends.look()
        state = self._pods.get(uid)
        return [] if state is None else [self._list(state, self._host_ips())]

    @contextmanager
    def news(self, uid: PodUID) -> Iterator[asyncio.Event]:
        """Something that is set whenever anything about a pod changes."""
        event = asyncio.Event()
        waiting = self._waiting.setdefault(uid, set())
        waiting.add(event)
        try:
            yield event
        finally:
            waiting.discard(event)
            if not waiting:
                self._waiting.pop(uid, None)

    # What happened

    def begin(self, record: PodRecord) -> None:
        """A pod gets a sandbox; what was made in those before it is kept."""
        known = self._pods.get(record.uid)
        attempts = known.attempts if known is not None else ()
        self._put(PodState(record=record, attempts=attempts))

    def look_for_shim(self, uid: PodUID) -> bool:
        """Find out whether a pod's shim can be asked."""
        state = self._pods[uid]
        if state.is_ready:
            return True
        shim = self._shelf.read_shim(state.record)
        if shim is None or state.record.stopped:
            return False
        sandbox_id = state.record.sandbox_id
        if not self.ends.watch(shim.process, lambda: self._shim_over(uid, sandbox_id)):
            return False
        in_force = self._limits.pod_in_force(uid, state.record.limits)
        self._put(structs.replace(state, is_ready=True, was_ready=True, resources=in_force))
        return True

    def shim(self, uid: PodUID) -> ShimRecord | None:
        """The shim of a pod, if it is there."""
        state = self._pods.get(uid)
        shim = self._shelf.read_shim(state.record) if state is not None else None
        return shim if shim is not None and is_alive(shim.process) else None

    def stopped(self, record: PodRecord) -> None:
        """A pod has no sandbox any more."""
        state = self._pods[record.uid]
        self._put(structs.replace(state, record=record, is_ready=False))
        self.look_at_all(record.uid)

    def add(self, uid: PodUID, launch: Launch) -> Attempt:
        """An attempt was made."""
        attempt = Attempt(launch=launch, resources=self._in_force(uid, launch))
        self._put(self._pods[uid].with_attempt(attempt))
        return self.look_at(uid, launch.id)

    def look_at(self, uid: PodUID, id: str) -> Attempt:
        """Find out how far an attempt has come."""
        attempt = self._pods[uid].find(id)
        if attempt is None:
            raise KeyError(id)
        place = self._shelf.folder(uid).container(id)
        attempt = self._found_started(uid, attempt, place)
        attempt = self._found_end(uid, attempt, place)
        self._replace(uid, attempt)
        return attempt

    def look_at_all(self, uid: PodUID) -> None:
        """Find out how far those attempts have come that have not ended."""
        for attempt in self._pods[uid].attempts:
            if not attempt.has_ended:
                self.look_at(uid, attempt.launch.id)

    def resized(self, record: PodRecord) -> None:
        """A pod was given other limits, or some of them: find out which hold now."""
        uid = record.uid
        in_force = self._limits.pod_in_force(uid, record.limits)
        state = structs.replace(self._pods[uid], record=record, resources=in_force)
        for attempt in state.attempts:
            if not attempt.has_ended:
                holds = self._in_force(uid, attempt.launch)
                state = state.with_attempt(structs.replace(attempt, resources=holds))
        if state != self._pods[uid]:
            self._put(state)

    def drop_attempt(self, uid: PodUID, id: str) -> None:
        """An attempt was removed."""
        if uid in self._pods:
            self._put(self._pods[uid].without_attempt(id))

    def drop(self, uid: PodUID) -> None:
        """A pod was removed."""
        self._pods.pop(uid, None)
        self._listed.pop(uid, None)
        self._tell(uid)

    def _found_started(self, uid: PodUID, attempt: Attempt, place: ContainerFolder) -> Attempt:
        if attempt.started is not None or attempt.has_ended:
            return attempt
        started = self._shelf.read_started(place)
        if started is None:
            return attempt
        id = attempt.launch.id
        # One that has ended already is found by its exit, or lost.
        self.ends.watch(started.keeper, lambda: self._keeper_over(uid, id))
        return structs.replace(attempt, started=started)

    def _found_end(self, uid: PodUID, attempt: Attempt, place: ContainerFolder) -> Attempt:
        if attempt.exit is not None:
            return attempt
        # In this order: a keeper writes first and ends then.
        is_kept = self._is_kept(uid, attempt)
        end = self._shelf.read_exit(place)
        if end is None and not is_kept:
            end = self._shelf.write_exit(place, lost(attempt, self._now()))
        if end is None:
            return attempt
        message = termination_message(place, attempt.launch, end)
        return structs.replace(attempt, exit=end, message=message)

    def _in_force(self, uid: PodUID, launch: Launch) -> ResourceFacts:
        resized = self._shelf.read_resized(self._shelf.folder(uid).container(launch.id))
        told = launch.resources if resized is None else resized.resources
        return self._limits.in_force(uid, launch.id, from_document(told, ResourceRequirements))

    def _is_kept(self, uid: PodUID, attempt: Attempt) -> bool:
        """Whether somebody looks after an attempt, who will tell how it ended."""
        if attempt.started is not None:
            return is_alive(attempt.started.keeper)
        shim = self.shim(uid)
        return shim is not None and attempt.launch.sandbox_id == shim.sandbox_id

    def _keeper_over(self, uid: PodUID, id: str) -> None:
        state = self._pods.get(uid)
        if state is not None and state.find(id) is not None:
            self.look_at(uid, id)

    def _shim_over(self, uid: PodUID, sandbox_id: str) -> None:
        state = self._pods.get(uid)
        if state is not None and state.record.sandbox_id == sandbox_id:
            self._put(structs.replace(state, is_ready=False))
            self.look_at_all(uid)

    def _replace(self, uid: PodUID, attempt: Attempt) -> None:
        state = self._pods[uid]
        if state.find(attempt.launch.id) != attempt:
            self._put(state.with_attempt(attempt))

    def _put(self, state: PodState) -> None:
        self._pods[state.record.uid] = state
        self._tell(state.record.uid)

    def _tell(self, uid: PodUID) -> None:
        self.hints.tell(uid)
        for event in self._waiting.get(uid, ()):
            event.set()

    def _list(self, state: PodState, ips: Sequence[str]) -> RuntimePod:
        uid = state.record.uid
        known = self._listed.get(uid)
        if known is not None and known[0] is state:
            return known[1]
        listed = runtime_pod(state, ips, known)
        self._listed[uid] = state, listed
        return listed
