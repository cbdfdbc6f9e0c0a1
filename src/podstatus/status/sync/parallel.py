"""Keeps the server's copy of every status equal to the cached one: many pods at once.

What differs from upstream, and why, is in docs/decisions/0016-parallel-sync.md; each difference
is a field of `podstatus.status.policy.Sending`.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self

import msgspec

from podstatus.base.clock import Clock, Elapsed
from podstatus.kube.conditions import READY, is_condition_true
from podstatus.kube.errors import UnavailableError
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import ApiUID, Pod, PodUID, is_static_pod
from podstatus.status.decide.plan import PodSync, address, addressed, needs_update, plan_full
from podstatus.status.policy import Sending
from podstatus.status.ports import Directory, PodEvents, PodReference
from podstatus.status.sync.foreign_writes import NOTHING_NAMED, ForeignWrites
from podstatus.status.sync.locked_store import SyncedStatuses
from podstatus.status.sync.outbox import UndeliveredStatuses
from podstatus.status.sync.sequential import is_cancelled
from podstatus.status.sync.state.retry import Attempt, Failure, Retry
from podstatus.status.sync.state.workqueue import Lane, Schedule
from podstatus.status.sync.status_sender import Flight

logger = logging.getLogger(__name__)

STATUS_REJECTED = "StatusRejected"
"""The reason of the event about a pod whose status the API server does not take."""


class SyncCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What is on its way, or kept from it, at one moment."""

    in_flight: int = 0
    """Pods that are being synced."""
    quarantined: int = 0
    """Pods whose status the API server rejects: it is sent again when it changes, or much later."""
    outbox: int = 0
    """Pods with a last status on the disk, until it has arrived."""


_MOST_IN_A_ROW = 16
"""Pods that a task syncs one after the other, without a new task for each. Not more, as there are
clients that never wait: others must have their turn all the same."""
_SHORTEST_WAIT = 0.001
"""Seconds. A clock that rounds must not wake us just before somebody may go, again and again."""


class ParallelSyncer:
    """Syncs pods as they change. Its tasks live within `async with`, in one loop."""

    def __init__(
        self,
        flight: Flight,
        statuses: SyncedStatuses,
        *,
        directory: Directory,
        events: PodEvents,
        foreign: ForeignWrites,
        redecide: Callable[[PodUID], bool],
        undelivered: UndeliveredStatuses,
        clock: Clock,
        elapsed: Elapsed,
        gates: FeatureGates,
        sending: Sending,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._flight = flight
        self._statuses = statuses
        self._directory = directory
        self._events = events
        self._foreign = foreign
        self._redecide = redecide
        self._undelivered = undelivered
        self._clock = clock
        self._elapsed = elapsed
        self._gates = gates
        self._chance = chance
        self._schedule = Schedule(sending)
        self._unlooked: dict[PodUID, None] = {}
        """Pods to look at with the next batch, whatever it is about: they changed, have no mirror
        pod yet, or something was in the way."""
        self._tasks: asyncio.TaskGroup | None = None
        self._flying: set[asyncio.Task[None]] = set()
        self._tidying: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._alarm: tuple[float, asyncio.Task[None]] | None = None

    async def __aenter__(self) -> Self:
        self._tasks = await asyncio.TaskGroup().__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what is under way; what was not acknowledged is sent the next time."""
        tasks, self._tasks = self._tasks, None
        for task in self._flying:
            task.cancel()
        if self._alarm is not None:
            self._alarm[1].cancel()
            self._alarm = None
        try:
            if tasks is not None:
                await tasks.__aexit__(kind, error, trace)
        finally:
            # Not left to the tasks: one that was cancelled before its first step never runs.
            self._unlooked.update(dict.fromkeys(self._schedule.abandon()))

    def sent_versions(self) -> Mapping[ApiUID, int]:
        """The last version that the API server acknowledged, by API UID."""
        return self._flight.sent_versions()

    def counts(self) -> SyncCounts:
        """What is on its way, or kept from it."""
        return SyncCounts(
            in_flight=self._schedule.in_flight,
            quarantined=self._schedule.quarantined,
            outbox=len(self._undelivered),
        )

    async def sync_batch(self, *, full: bool) -> int:
        """Begin to sync what changed, or with `full` also what the API shows differently.

        Returns how many pods are to be synced; `rest` waits for them.
        """
        self._look_at(self._statuses.take_seen())
        self._unlooked.update(dict.fromkeys(self._statuses.take_changed()))
        wanted = self._want(tuple(self._unlooked), Lane.ORDINARY)
        # An alarm tells of them too, but lives only as long as `async with`.
        wanted |= self._want(self._schedule.take_due(self._elapsed.seconds()), Lane.RECONCILE)
        self._launch()
        if full:
            wanted |= self._want(self._plan_full(), Lane.RECONCILE)
            self._launch()
            self._tidy()
        self._keep_waiting()
        return len(wanted)

    async def rest(self) -> None:
        """Wait until nothing is under way."""
        while self._flying:
            await asyncio.wait(self._flying)

    async def drain(self) -> None:
        """Give everybody a last chance, and wait for that; who calls this sets the deadline.

        While the server is away a few look for it, once: if nobody finds it, that is that.
        """
        self._want(self._schedule.forgive(), Lane.ORDINARY)
        was_away = False
        while self._schedule.try_server() and not was_away:
            was_away = self._schedule.finds_no_server
            self._launch()
            await self.rest()
            was_away = was_away and self._schedule.finds_no_server
        await self.rest()

    # Who goes next

    def _plan_full(self) -> list[PodUID]:
        entries = self._statuses.entries()
        translations = self._directory.uid_translations()
        plan = plan_full(entries, self._flight.sent, translations, self._directory, self._gates)
        self._flight.send_again(plan.forget)
        known = {sync.api_uid for sync in addressed(entries, translations)}
        self._flight.keep(known)
        self._foreign.keep(known)
        self._schedule.keep(entries)
        return [sync.uid for sync in plan.syncs]

    def _want(self, uids: Iterable[PodUID], lane: Lane, now: float | None = None) -> set[PodUID]:
        """Have pods synced when their turn comes; those that may."""
        now, wanted = self._elapsed.seconds() if now is None else now, set()
        for uid in uids:
            self._unlooked.pop(uid, None)
            try:
                if self._want_one(uid, lane, now):
                    wanted.add(uid)
            except Exception as error:  # noqa: BLE001 - a port of somebody else's
                self._in_the_way(uid, error)
        return wanted

    def _in_the_way(self, uid: PodUID, error: Exception) -> None:
        """Somebody else's code is broken; the next batch looks again."""
        logger.error("pod not looked at, will retry: uid=%s", uid, exc_info=error)
        self._unlooked[uid] = None

    def _want_one(self, uid: PodUID, lane: Lane, now: float) -> bool:
        sync = self._look_up(uid)
        if sync is None:
            return False
        shown, retry = self._shown(sync), self._schedule.retry(uid)
        if retry is not None and retry.attempt.api_uid != sync.api_uid:
            self._schedule.forget(uid)  # it was another mirror pod that failed
        elif retry is not None and retry.failure is Failure.GONE and shown is None:
            self._schedule.hasten(uid)
            return False  # until the watch shows it again
        lane = Lane.URGENT if self._is_urgent(sync, shown) else lane
        return self._schedule.want(uid, sync.entry.version, lane, now)

    def _look_up(self, uid: PodUID) -> PodSync | None:
        """What to send of a pod, and to which object; None if there is nothing, or no object."""
        entry = self._statuses.entry(uid)
        if entry is None:
            self._schedule.forget(uid)
            return None
        sync = address(uid, entry, self._directory.uid_translations())
        if sync is None:
            self._unlooked[uid] = None  # a static pod that has no mirror pod yet
        return sync

    def _shown(self, sync: PodSync) -> Pod | None:
        """What the watch shows of the object."""
        pod = self._directory.pod_by_uid(sync.uid)
        if pod is not None and is_static_pod(pod):
            pod = self._directory.mirror_pod_by_pod(pod)
        return pod if pod is not None and ApiUID(pod.uid) == sync.api_uid else None

    def _look_at(self, uids: Iterable[PodUID]) -> None:
        """See whether others wrote what is ours, and have it corrected."""
        for uid in uids:
            try:
                sync = self._look_up(uid)
            except Exception as error:  # noqa: BLE001 - a port of somebody else's
                self._in_the_way(uid, error)
            else:
                if sync is not None:
                    self._look_at_one(sync)

    def _look_at_one(self, sync: PodSync) -> None:
        try:
            shown = self._shown(sync)
            if shown is not None and self._foreign.look(shown):
                self._correct(sync)
        except Exception as error:  # noqa: BLE001 - a port of somebody else's
            self._in_the_way(sync.uid, error)

    def _correct(self, sync: PodSync) -> None:
        """Have a status sent that is made from what is so, not from what was said last."""
        self._flight.send_again([sync.api_uid])
        self._statuses.demand(sync.uid)
        if not self._redecide(sync.uid):
            self._want([sync.uid], Lane.ORDINARY)

    def _is_urgent(self, sync: PodSync, shown: Pod | None) -> bool:
        """Whether somebody waits for it: it is to go, or ready for the first time."""
        if sync.entry.finished:
            return True
        if shown is not None and shown.metadata.deletion_timestamp is not None:
            return True
        if not is_condition_true(sync.entry.status.conditions, READY):
            return False
        seen = shown is not None and is_condition_true(shown.status.conditions, READY)
        return not seen and not self._flight.has_been_ready(sync.api_uid)

    # What is under way

    def _launch(self, *, but_one: bool = False) -> PodUID | None:
        """Let those go who may, and look again when somebody else may.

        Returns the first of them, if the caller sees to that one.
        """
        if self._tasks is None:
            return None
        now = self._elapsed.seconds()
        one = self._schedule.take(now) if but_one else None
        while (uid := self._schedule.take(now)) is not None:
            self._start(self._tasks, uid)
        at = self._schedule.next_look(now)
        if at is not None and (self._alarm is None or at < self._alarm[0]):
            self._set_alarm(self._tasks, at, max(at - now, _SHORTEST_WAIT))
        return one

    def _start(self, tasks: asyncio.TaskGroup, uid: PodUID) -> None:
        task = tasks.create_task(self._fly(uid))
        self._flying.add(task)
        task.add_done_callback(self._flying.discard)

    def _set_alarm(self, tasks: asyncio.TaskGroup, at: float, seconds: float) -> None:
        if self._alarm is not None:
            self._alarm[1].cancel()
        self._alarm = at, tasks.create_task(self._wait_and_look(at, seconds))

    async def _wait_and_look(self, at: float, seconds: float) -> None:
        await self._clock.wait(seconds)
        self._alarm = None
        # A clock that rounds may show a moment just before `at`.
        now = max(at, self._elapsed.seconds())
        # Last, so that those who fail all the time do not stand before those who do not.
        self._want(self._schedule.take_due(now), Lane.RECONCILE, now)
        self._launch()

    def _tidy(self) -> None:
        """Let the outbox go of what it need not keep, without waiting for its disk."""
        if self._tasks is None or self._tidying in self._flying:
            return
        tidy = self._undelivered.tidy(self._statuses.uids())
        self._tidying = task = self._tasks.create_task(tidy)
        self._flying.add(task)
        task.add_done_callback(self._flying.discard)

    def _keep_waiting(self) -> None:
        """Have on the disk what cannot be sent now: an outage may last longer than we do."""
        if self._tasks is None or self._keeping in self._flying or self._schedule.is_at_ease:
            return
        waiting = self._undelivered.waiting(self._statuses.entries())
        waiting = [uid for uid in waiting if self._schedule.has_to_wait(uid)]
        if not waiting:
            return
        keep = self._undelivered.keep_all(waiting, self._statuses.entry)
        self._keeping = task = self._tasks.create_task(keep)
        self._flying.add(task)
        task.add_done_callback(self._flying.discard)

    async def _fly(self, uid: PodUID) -> None:
        """Sync a pod, then whoever is next."""
        for _ in range(_MOST_IN_A_ROW):
            await self._sync_one(uid)
            following = self._launch(but_one=True)
            if following is None:
                return
            uid = following
        if self._tasks is not None:
            self._start(self._tasks, uid)

    async def _sync_one(self, uid: PodUID) -> None:
        """Sync one pod; whatever goes wrong with it, the others go on."""
        sync = None
        try:
            sync = self._look_up(uid)
            if sync is not None and self._has_news(sync):
                await self._sync(sync)
        except asyncio.CancelledError:
            # By us at the end, or by a client that cancels the task it was called in: then it must
            # not count as under way for ever.
            self._schedule.landed(uid)
            self._unlooked[uid] = None
            raise
        except Exception as error:  # noqa: BLE001 - a port of somebody else's
            self._in_the_way(uid, error)
        self._schedule.landed(uid)
        if sync is not None:
            self._look_back(sync)

    def _has_news(self, sync: PodSync) -> bool:
        """Whether there is anything to send or to delete, or was when it failed."""
        if self._schedule.retry(sync.uid) is not None:
            return True
        return needs_update(sync, self._flight.sent, self._directory)

    def _look_back(self, sync: PodSync) -> None:
        """See what happened to a pod that was under way."""
        # What the watch showed meanwhile could have been ours.
        self._look_at_one(sync)
        entry = self._statuses.entry(sync.uid)
        if entry is None:
            self._schedule.forget(sync.uid)
        elif entry.version != sync.entry.version:
            self._want([sync.uid], Lane.ORDINARY)

    async def _sync(self, sync: PodSync) -> None:
        try:
            await self._sync_and_tell(sync)
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            self._failed(sync, UnavailableError("the client gave up"))
        except Exception as error:  # noqa: BLE001 - told apart by its kind
            self._failed(sync, error)
        else:
            released = self._schedule.succeeded(sync.uid)
            if released:
                self._want(released, Lane.ORDINARY)

    async def _sync_and_tell(self, sync: PodSync) -> None:
        # First of all: a server may take half a minute to say who else wrote.
        if sync.entry.finished:
            await self._undelivered.keep(sync.uid, sync.entry, self._statuses.entry)
        # One that looks for the server reads first: a server that fails only the patches of
        # some pods is found all the same, and does not keep the others waiting.
        is_probe = self._schedule.is_probe(sync.uid)
        self._foreign.sending(sync.api_uid)
        shown, named = self._shown(sync), NOTHING_NAMED
        if self._foreign.has_found(sync.api_uid):
            named = await self._foreign.name_writers(sync, shown, ask=not is_probe)
            shown = self._shown(sync)
        try:
            pod = await self._flight.sync(
                sync, shown, lambda: self._answered(sync.uid), ask=is_probe
            )
        except BaseException:
            self._foreign.keep_for_later(sync.api_uid, named)
            raise
        if pod is not None:
            self._foreign.answered(pod)
            self._foreign.tell(sync, named, pod)

    def _answered(self, uid: PodUID) -> None:
        self._want(self._schedule.answered(uid), Lane.ORDINARY)
        self._launch()

    def _failed(self, sync: PodSync, error: Exception) -> None:
        now = self._elapsed.seconds()
        attempt = Attempt(sync.api_uid, sync.entry.version)
        retry, released = self._schedule.failed(
            sync.uid, attempt, error, now=now, chance=self._chance()
        )
        if retry.at <= now:
            self._unlooked[sync.uid] = None  # no waits are wanted: with the next batch, then
        self._statuses.count_failure(retry.failure.value)
        self._keep_waiting()
        self._tell(sync, retry, error)
        self._want(released, Lane.ORDINARY)

    def _tell(self, sync: PodSync, retry: Retry, error: Exception) -> None:
        match retry.failure:
            case Failure.GONE:
                logger.debug("pod is not on the server: %s error=%s", sync, error)
            case Failure.REJECTED:
                logger.error("status rejected, kept until it changes: %s error=%s", sync, error)
                self._warn(sync, f"Status was rejected: {error}")
            case Failure.BROKEN:
                logger.error("pod not synced, will retry: %s", sync, exc_info=error)
            case _:
                logger.warning("pod not synced, will retry: %s error=%s", sync, error)

    def _warn(self, sync: PodSync, message: str) -> None:
        reference = PodReference(sync.entry.namespace, sync.entry.name, sync.api_uid)
        try:
            self._events.warn(reference, STATUS_REJECTED, message)
        except Exception:
            logger.exception("event not recorded: %s", sync)
