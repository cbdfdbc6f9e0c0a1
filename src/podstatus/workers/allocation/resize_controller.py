"""Decide about pods that ask for other resources than they were granted, now or when there is room.

Tried when a pod changes, when one leaves or gives something back, and every 3 minutes.

Upstream: RetryPendingResizes, allocation/allocation_manager.go v1.36.4; HandlePodUpdates and
its brothers, kubelet.go.
"""

import asyncio
import logging
from collections.abc import Callable

from podstatus.base.aio import wait_event_or_timeout
from podstatus.base.clock import Clock
from podstatus.events import reasons
from podstatus.events.event import pod_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.conditions import POD_RESIZE_PENDING
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.resize import INFEASIBLE
from podstatus.status.manager import StatusManager
from podstatus.workers.admission.resource_fit import Taken
from podstatus.workers.allocation.allocations import Grants
from podstatus.workers.allocation.request_totals import Occupancy
from podstatus.workers.lifecycle.pod_registry import Lives
from podstatus.workers.lifecycle.state_machine import Stage
from podstatus.workers.resize.decision import Accepted, Decision, Pending, Waiting, in_order
from podstatus.workers.resize.message import resize_words

logger = logging.getLogger(__name__)

RETRY_SECONDS = 180.0
_SOON = 1.0
"""Seconds between two looks while not every source has delivered."""

Decide = Callable[[Pod, Pod, Taken], Decision]
"""Whether a pod gets what it asks for: as it asks, as granted, beside what the others hold."""


class Resizes:
    """The pods that wait for other resources. For one event loop; what it is told never waits."""

    def __init__(
        self,
        lives: Lives,
        grants: Grants,
        statuses: StatusManager,
        recorder: EventRecorder,
        occupancy: Occupancy,
        *,
        decide: Decide,
        wake: Callable[[PodUID], None],
        all_delivered: Callable[[], bool],
        clock: Clock,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """`wake` is told of pods whose status has changed, or that are to be resized."""
        self._lives = lives
        self._grants = grants
        self._statuses = statuses
        self._recorder = recorder
        self._occupancy = occupancy
        self._decide = decide
        self._wake = wake
        self._all_delivered = all_delivered
        self._clock = clock
        self._beat = beat
        self._waiting: set[PodUID] = set()
        self._bell = asyncio.Event()

    # What is told

    def look_at(self, pod: Pod) -> None:
        """A source has this pod, or has it otherwise."""
        if self._grants.granted(pod) is not pod:
            self._waiting.add(pod.uid)
            self._bell.set()
        else:
            self._waiting.discard(pod.uid)
            self._wants_no_more(pod.uid)

    def retry(self) -> None:
        """There may be room now."""
        if self._waiting:
            self._bell.set()

    # The work

    async def run(self) -> None:
        """Decide until cancelled."""
        while True:
            self._bell.clear()
            self._beat()
            rest = await self.try_all()
            await wait_event_or_timeout(self._bell, self._clock, rest)

    async def try_all(self) -> float:
        """Decide about all that wait; how many seconds until they are looked at again.

        Nothing is decided before all who are there already are known.
        """
        if not self._all_delivered():
            return _SOON
        for uid in in_order(self._in_line()):
            pod = self._active(uid)
            if pod is not None:
                await self._try_alone(pod)
        return RETRY_SECONDS

    def _in_line(self) -> list[Waiting]:
        pods = {uid: self._active(uid) for uid in self._waiting}
        self._waiting = {uid for uid, pod in pods.items() if pod is not None}
        return [
            Waiting(pod=pod, granted=self._grants.granted(pod), since=self._since(uid))
            for uid, pod in pods.items()
            if pod is not None
        ]

    def _active(self, uid: PodUID) -> Pod | None:
        life = self._lives.get(uid)
        return life.pod if life is not None and life.stage is Stage.SYNC else None

    def _since(self, uid: PodUID) -> Time | None:
        for condition in self._statuses.pod_resize_conditions(uid):
            if condition.type == POD_RESIZE_PENDING:
                return condition.last_transition_time
        return None

    async def _try_alone(self, pod: Pod) -> None:
        """Decide about one; what goes wrong with it, such as a full disk, is not to stop others."""
        self._waiting.discard(pod.uid)
        try:
            await self._try(pod)
        except Exception:
            logger.exception("resize cannot be decided: pod=%s/%s uid=%s", *pod.full_name, pod.uid)
            self._waiting.add(pod.uid)

    async def _try(self, pod: Pod) -> None:
        granted = self._grants.granted(pod)
        if granted is pod:
            self._wants_no_more(pod.uid)
            return
        match self._decide(pod, granted, self._occupancy.beside(pod.uid)):
            case Accepted():
                await self._grants.grant(pod)
                self._accepted(pod)
            case Pending() as pending:
                self._not_yet(pod, pending)

    def _accepted(self, pod: Pod) -> None:
        generation = pod.metadata.generation
        logger.info("resize granted: pod=%s/%s generation=%d", *pod.full_name, generation)
        self._statuses.clear_pod_resize_pending_condition(pod.uid)
        # An error of an earlier resize is over, and so is its generation.
        self._statuses.clear_pod_resize_in_progress_condition(pod.uid)
        self._statuses.set_pod_resize_in_progress_condition(pod.uid, "", "", generation)
        words = resize_words("Pod resize started", pod, generation)
        self._recorder.normal(pod_reference(pod), reasons.RESIZE_STARTED, words)
        self._wake(pod.uid)

    def _not_yet(self, pod: Pod, pending: Pending) -> None:
        generation, before = pod.metadata.generation, self._shown(pod.uid)
        is_infeasible = pending.reason == INFEASIBLE
        if not is_infeasible:
            self._waiting.add(pod.uid)
        changed = self._statuses.set_pod_resize_pending_condition(
            pod.uid, pending.reason, pending.message, generation
        )
        if changed:
            logger.info(
                "resize not granted: pod=%s/%s reason=%s message=%s",
                *pod.full_name,
                pending.reason,
                pending.message,
            )
            reason = reasons.RESIZE_INFEASIBLE if is_infeasible else reasons.RESIZE_DEFERRED
            words = resize_words(f"Pod resize {pending.reason}", pod, generation, pending.message)
            self._recorder.warn(pod_reference(pod), reason, words)
        if changed or self._shown(pod.uid) != before:
            self._wake(pod.uid)

    def _shown(self, uid: PodUID) -> list[str]:
        """The words of its conditions."""
        return [condition.message for condition in self._statuses.pod_resize_conditions(uid)]

    def _wants_no_more(self, uid: PodUID) -> None:
        """It asks for what it has: a resize was taken back."""
        if self._since(uid) is not None:
            self._statuses.clear_pod_resize_pending_condition(uid)
            self._wake(uid)
