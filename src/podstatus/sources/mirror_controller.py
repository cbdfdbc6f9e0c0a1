"""Keeps the mirror pods of static pods right at the API server.

Upstream: MirrorClient, pkg/kubelet/pod/mirror_client.go v1.36.4. There, pod workers do it as they
go; here it is a service of its own, so that an outage has one place to be waited for.
"""

import asyncio
import logging
import random as chance
from collections.abc import Callable, Collection
from typing import Literal

import msgspec

from podstatus.base.aio import SystemClock, WakeUp
from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock, Elapsed
from podstatus.client import ApiClient
from podstatus.client.rest.failure_backoff import FailureBackoff
from podstatus.kube.errors import ApiError, BusyError, UnavailableError
from podstatus.kube.objects.pod import Pod
from podstatus.sources.mirror_client import MirrorClient, MirrorCreation
from podstatus.sources.mirror_plan import (
    CreateMirror,
    FullName,
    MirrorStep,
    RemoveMirror,
    ReplaceMirror,
    plan_mirrors,
)

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 1.0
"""Between two looks, if nobody wakes us: a mirror pod that was deleted is back within 2 s."""
WATCH_TIMEOUT_SECONDS = 1.0
"""For which we wait for the watch to show what we did, before we do it again."""
RECREATE_DELAY_SECONDS = 0.5
"""Between the end of a mirror pod and the next one. Who deletes one looks for its end, and does
not find it if another one is there at once: kubectl would wait for ever. Upstream takes 0.5 to 2 s.
"""
_BACKOFF = Backoff(initial_seconds=1.0, max_seconds=10.0)

OnMirrorProblem = Callable[[Pod, str], None]


class _Pause(msgspec.Struct, frozen=True):
    """What was tried for a pod."""

    until: float
    backoff: Backoff
    mirror_uid: str
    """The UID of the mirror pod that the watch showed; empty if none."""
    problem: str = ""
    """As it was told."""


class MirrorController:
    """Creates, repairs and removes mirror pods. For one event loop; `wake` from any thread.

    `static_pods` are those that should have a mirror pod, `mirror_pods` those that the watch shows.
    `may_remove` says whether all is over with the static pod that had this name: it has to be
    False until every source has delivered. Without `node_uid` nothing is created.
    """

    def __init__(
        self,
        client: ApiClient,
        node_name: str,
        *,
        static_pods: Callable[[], Collection[Pod]],
        mirror_pods: Callable[[], Collection[Pod]],
        may_remove: Callable[[FullName], bool],
        node_uid: Callable[[], str | None],
        clock: Clock | None = None,
        on_problem: OnMirrorProblem = lambda *_: None,
        random: Callable[[], float] = chance.random,
        heartbeat: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = MirrorClient(client, node_name)
        self._static_pods = static_pods
        self._mirror_pods = mirror_pods
        self._may_remove = may_remove
        self._node_uid = node_uid
        self._clock = clock or SystemClock()
        self._elapsed = Elapsed(self._clock)
        self._on_problem = on_problem
        self._random = random
        self._heartbeat = heartbeat
        self._wake_up = WakeUp[Literal["wake"]]()
        self._outage = FailureBackoff(logger, "sync of mirror pods", _BACKOFF, random)
        self._retry_server_at = 0.0
        """When the server may be asked again, after it could not be reached."""
        self._pauses: dict[FullName, _Pause] = {}
        self._present: frozenset[FullName] = frozenset()
        """Those that had a mirror pod at the last look."""
        self._removed_at: dict[FullName, float] = {}
        """When the others of them were last found without it."""

    def wake(self) -> None:
        """Look soon: a static pod or a mirror pod has changed."""
        self._wake_up.set("wake")

    async def run(self) -> None:
        """Keep them right until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._run_reconcile())
            tasks.create_task(self._run_timer())

    async def _run_reconcile(self) -> None:
        while True:
            self._heartbeat()
            await self.reconcile_once()
            await self._wake_up.wait()

    async def _run_timer(self) -> None:
        while True:
            await self._clock.wait(PERIOD_SECONDS)
            self.wake()

    async def reconcile_once(self) -> None:
        """Do what has to be done now."""
        mirrors = self._mirror_pods()
        self._record_removals(frozenset(mirror.full_name for mirror in mirrors))
        steps = plan_mirrors(self._static_pods(), mirrors, self._may_remove)
        # What needs nothing any more is right: what was tried before does not matter.
        self._pauses = {name: self._pauses[name] for name in self._pauses if name in steps}
        if self._elapsed.seconds() < self._retry_server_at:
            return
        for name, step in steps.items():
            if self._must_wait(name, step):
                continue
            if not await self._try(name, step):
                return

    def _record_removals(self, present: frozenset[FullName]) -> None:
        """Remember who has lost its mirror pod just now."""
        now = self._elapsed.seconds()
        self._removed_at = {
            n: at for n, at in self._removed_at.items() if at + RECREATE_DELAY_SECONDS > now
        }
        self._removed_at |= dict.fromkeys(self._present - present, now)
        self._present = present

    def _must_wait(self, name: FullName, step: MirrorStep) -> bool:
        """Whether all is as it was when we tried, not long ago, or the node is not known yet."""
        if isinstance(step, CreateMirror):
            if not self._node_uid():
                return True  # a mirror pod belongs to its node
            gone_at = self._removed_at.get(name)
            if gone_at is not None and self._elapsed.seconds() < gone_at + RECREATE_DELAY_SECONDS:
                return True
        pause = self._pauses.get(name)
        if pause is None or pause.mirror_uid != _mirror_uid(step):
            return False
        return self._elapsed.seconds() < pause.until

    async def _try(self, name: FullName, step: MirrorStep) -> bool:
        """Do one step; whether the server could be reached."""
        try:
            self._await_watch(name, step, await self._apply(step))
        except (UnavailableError, BusyError) as error:
            wait = self._outage.failed(error, self._clock.monotonic())
            self._retry_server_at = self._elapsed.seconds() + wait
            return False
        except ApiError as error:
            self._record_problem(name, step, str(error))
        self._outage.recovered(self._clock.monotonic())
        return True

    async def _apply(self, step: MirrorStep) -> MirrorCreation:
        match step:
            case CreateMirror(pod):
                return await self._create(pod)
            case ReplaceMirror(mirror, pod):
                await self._client.delete(mirror)
                if mirror.metadata.deletion_timestamp is None:
                    return await self._create(pod)
            case RemoveMirror(mirror):
                await self._client.delete(mirror)
        return MirrorCreation.CREATED

    async def _create(self, pod: Pod) -> MirrorCreation:
        node_uid = self._node_uid()
        return await self._client.create(pod, node_uid) if node_uid else MirrorCreation.CREATED

    def _await_watch(self, name: FullName, step: MirrorStep, creation: MirrorCreation) -> None:
        """Wait for the watch to show it; longer each time, if it does not."""
        if creation is MirrorCreation.CREATED:
            until = self._elapsed.seconds() + WATCH_TIMEOUT_SECONDS
            self._pauses[name] = _Pause(until, _BACKOFF, _mirror_uid(step))
        else:
            self._back_off(name, step, "")

    def _record_problem(self, name: FullName, step: MirrorStep, problem: str) -> None:
        told = self._pauses[name].problem if name in self._pauses else ""
        self._back_off(name, step, problem)
        if problem == told:
            return
        pod = step.mirror if isinstance(step, RemoveMirror) else step.pod
        logger.error(
            "mirror pod is refused, will retry: namespace=%s name=%s error=%s", *name, problem
        )
        try:
            self._on_problem(pod, problem)
        except Exception:
            logger.exception("handler of problems failed: namespace=%s name=%s", *name)

    def _back_off(self, name: FullName, step: MirrorStep, problem: str) -> None:
        pause = self._pauses.get(name)
        backoff = (pause.backoff if pause else _BACKOFF).failed()
        until = self._elapsed.seconds() + backoff.delay(self._random())
        self._pauses[name] = _Pause(until, backoff, _mirror_uid(step), problem)


def _mirror_uid(step: MirrorStep) -> str:
    return "" if isinstance(step, CreateMirror) else step.mirror.uid
