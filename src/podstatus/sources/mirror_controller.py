"""Reconcile the mirror pods of static pods with the API server.

Upstream: MirrorClient, pkg/kubelet/pod/mirror_client.go v1.36.4. There, the pod workers do it; here
it is a separate service, so that one place handles outages of the API server.
"""

import asyncio
import logging
import random as chance
from collections.abc import Callable, Collection
from typing import Literal

import msgspec

from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.base.wake_up import WakeUp
from podstatus.client.rest.failure_backoff import FailureBackoff
from podstatus.kube.api_errors import ApiError, BusyError, UnavailableError
from podstatus.kube.objects.pod import Pod
from podstatus.sources.decide.mirror_plan import (
    CreateMirror,
    FullName,
    MirrorStep,
    RemoveMirror,
    ReplaceMirror,
    plan_mirrors,
)
from podstatus.sources.mirror_client import MirrorClient, MirrorCreation

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 1.0
"""Interval without a wake-up: a deleted mirror pod is re-created within 2 s."""
WATCH_TIMEOUT_SECONDS = 1.0
"""Time for the watch to show a change before it is tried again."""
RECREATE_DELAY_SECONDS = 0.5
"""Delay between the deletion of a mirror pod and its re-creation. A client that waits for the
deletion, such as kubectl, would miss it and wait forever. Upstream takes 0.5 to 2 s.
"""
_BACKOFF = Backoff(initial_seconds=1.0, max_seconds=10.0)

OnMirrorProblem = Callable[[Pod, str], None]


class _Pause(msgspec.Struct, frozen=True):
    """Back-off state of a pod after an attempt."""

    until: int
    """Monotonic time in nanoseconds."""
    backoff: Backoff
    mirror_uid: str
    """UID of the mirror pod at the time of the attempt; empty if there was none."""
    problem: str = ""
    """The last reported problem."""


class MirrorInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What the mirror pods depend on; each is called at every reconcile."""

    static_pods: Callable[[], Collection[Pod]]
    """The pods that should have a mirror pod."""
    mirror_pods: Callable[[], Collection[Pod]]
    """The mirror pods in the watch cache."""
    may_remove: Callable[[FullName], bool]
    """Whether the static pod of this name is finished; False until every source has delivered."""
    node_uid: Callable[[], str | None]
    """UID of the owner; no mirror pod is created while it is None."""


class MirrorController:
    """Creates, replaces and removes mirror pods. Not thread-safe, except for `wake`."""

    def __init__(
        self,
        client: MirrorClient,
        inputs: MirrorInputs,
        *,
        clock: Clock,
        on_problem: OnMirrorProblem,
        heartbeat: Callable[[], None],
        random: Callable[[], float] = chance.random,
    ) -> None:
        self._client = client
        self._inputs = inputs
        self._clock = clock
        self._on_problem = on_problem
        self._random = random
        self._heartbeat = heartbeat
        self._wake_up = WakeUp[Literal["wake"]]()
        self._outage = FailureBackoff(logger, "sync of mirror pods", _BACKOFF, random)
        self._retry_server_at: int | None = None
        """Earliest monotonic time of the next request after the server was unavailable."""
        self._pauses: dict[FullName, _Pause] = {}
        self._present: frozenset[FullName] = frozenset()
        """Pods that had a mirror pod at the last reconcile."""
        self._recreate_at: dict[FullName, int] = {}
        """Earliest monotonic time at which a mirror pod that is missing may be created again."""

    def wake(self) -> None:
        """Reconcile soon: a static pod or a mirror pod has changed. Thread-safe."""
        self._wake_up.set("wake")

    async def run(self) -> None:
        """Reconcile mirror pods until cancelled."""
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
        """Execute all steps that are due."""
        mirrors = self._inputs.mirror_pods()
        self._record_removals(frozenset(mirror.full_name for mirror in mirrors))
        steps = plan_mirrors(self._inputs.static_pods(), mirrors, self._inputs.may_remove)
        # A pod without a step is in sync: reset its back-off.
        self._pauses = {name: self._pauses[name] for name in self._pauses if name in steps}
        if not self._is_past(self._retry_server_at):
            return
        for name, step in steps.items():
            if self._must_wait(name, step):
                continue
            if not await self._try(name, step):
                return

    def _record_removals(self, present: frozenset[FullName]) -> None:
        """Record which mirror pods have disappeared since the last reconcile."""
        self._recreate_at = {n: at for n, at in self._recreate_at.items() if not self._is_past(at)}
        recreate_at = self._deadline(RECREATE_DELAY_SECONDS)
        self._recreate_at |= dict.fromkeys(self._present - present, recreate_at)
        self._present = present

    def _must_wait(self, name: FullName, step: MirrorStep) -> bool:
        """Whether the step is in back-off, too early, or the Node is not registered yet."""
        if isinstance(step, CreateMirror):
            if not self._inputs.node_uid():
                return True  # the Node must be the owner of the mirror pod
            if not self._is_past(self._recreate_at.get(name)):
                return True
        pause = self._pauses.get(name)
        if pause is None or pause.mirror_uid != _mirror_uid(step):
            return False
        return not self._is_past(pause.until)

    def _deadline(self, seconds: float) -> int:
        return self._clock.monotonic() + round(seconds * 1e9)

    def _is_past(self, deadline: int | None) -> bool:
        return deadline is None or self._clock.monotonic() >= deadline

    async def _try(self, name: FullName, step: MirrorStep) -> bool:
        """Execute a step. Return whether the server was available."""
        try:
            self._await_watch(name, step, await self._apply(step))
        except (UnavailableError, BusyError) as error:
            wait = self._outage.failed(error, self._clock.monotonic())
            self._retry_server_at = self._deadline(wait)
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
        node_uid = self._inputs.node_uid()
        return await self._client.create(pod, node_uid) if node_uid else MirrorCreation.CREATED

    def _await_watch(self, name: FullName, step: MirrorStep, creation: MirrorCreation) -> None:
        """Pause until the watch shows the change, with a growing delay if it does not."""
        if creation is MirrorCreation.CREATED:
            until = self._deadline(WATCH_TIMEOUT_SECONDS)
            self._pauses[name] = _Pause(until, _BACKOFF, _mirror_uid(step))
        else:
            self._back_off(name, step, "")

    def _record_problem(self, name: FullName, step: MirrorStep, problem: str) -> None:
        reported = self._pauses[name].problem if name in self._pauses else ""
        self._back_off(name, step, problem)
        if problem == reported:
            return
        pod = step.mirror if isinstance(step, RemoveMirror) else step.pod
        logger.error("mirror pod sync failed, will retry: pod=%s/%s error=%s", *name, problem)
        try:
            self._on_problem(pod, problem)
        except Exception:
            logger.exception("handler of mirror pod errors raised an exception: pod=%s/%s", *name)

    def _back_off(self, name: FullName, step: MirrorStep, problem: str) -> None:
        pause = self._pauses.get(name)
        backoff = (pause.backoff if pause else _BACKOFF).failed()
        until = self._deadline(backoff.delay(self._random()))
        self._pauses[name] = _Pause(until, backoff, _mirror_uid(step), problem)


def _mirror_uid(step: MirrorStep) -> str:
    return "" if isinstance(step, CreateMirror) else step.mirror.uid
