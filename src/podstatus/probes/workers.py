"""One task per probe that is to be run: it checks, counts, and tells what it comes to.

    watch(pod, status) ──► targets ──► a task per probe of a container that runs
                                       check ─► row ─► verdict ─► on_result
                                         └─► event, if it failed

Upstream: pkg/kubelet/prober v1.36.4.
"""

import asyncio
import logging
import random as chance
from collections.abc import Awaitable, Callable
from typing import Protocol

from podstatus.base.clock import Clock, Elapsed
from podstatus.events import reasons
from podstatus.events.event import container_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.probes.check_result import CannotCheckError, Checked
from podstatus.probes.targets import ProbeKey, Target, find_started, find_targets
from podstatus.probes.thresholds import Outcome, Row, Rules, count, first_due, rules_of
from podstatus.runtime.port import ProbeResult

logger = logging.getLogger(__name__)

_SECOND = 1_000_000_000
_TRIES = 3
"""Of a check that cannot be made, at once. Upstream's."""

Check = Callable[[Target], Awaitable[Checked]]
"""Checks a container once; raises CannotCheckError."""


class ProbeObserver(Protocol):
    """Who wants to know what checks come to. Must not wait."""

    def checked(self, target: Target, outcome: Outcome, seconds: float) -> None:
        """A check was made, or was tried in vain."""

    def ended(self, uid: PodUID) -> None:
        """Nothing of this pod is checked any more."""


class _NoObserver:
    """Nobody wants to know."""

    def checked(self, target: Target, outcome: Outcome, seconds: float) -> None:
        """Nobody is told."""

    def ended(self, uid: PodUID) -> None:
        """Nobody is told."""


class ProbeWorkers:
    """Runs the probes of all pods. For one event loop; what it is told never waits."""

    def __init__(
        self,
        check: Check,
        recorder: EventRecorder,
        *,
        on_result: Callable[[ProbeResult], None],
        clock: Clock,
        random: Callable[[], float] = chance.random,
        observer: ProbeObserver | None = None,
    ) -> None:
        """`on_result` is told of every verdict, also if it is no news."""
        self._check = check
        self._recorder = recorder
        self._on_result = on_result
        self._clock = clock
        self._random = random
        self._observer = observer or _NoObserver()
        self._group: asyncio.TaskGroup | None = None
        self._targets: dict[PodUID, dict[ProbeKey, Target]] = {}
        """Of every pod that was seen, also if there is nothing to check."""
        self._tasks: dict[ProbeKey, asyncio.Task[None]] = {}
        """Also those that are done with their container."""
        self._started: dict[PodUID, set[ProbeKey]] = {}
        """Of whom it was told that they had started without being checked."""

    async def run(self) -> None:
        """Check until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for targets in self._targets.values():
                for target in targets.values():
                    self._begin(target, spread=True)
            try:
                await asyncio.Event().wait()
            finally:
                self._group = None

    # What is told

    def watch(self, pod: Pod, status: PodStatus, *, ending: bool = False) -> None:
        """This status is told of the pod: check what runs, and nothing else.

        `ending`: the pod is to end, whether it was deleted or not.
        """
        targets = find_targets(pod, status, ending=ending)
        known = self._targets.get(pod.uid)
        self._targets[pod.uid] = targets
        self._tell_started(pod, status)
        for key in (known or {}).keys() - targets.keys():
            self._stop(key)
        for key in targets.keys() - (known or {}).keys():
            # Who runs when a pod is first seen has done so before the agent came.
            self._begin(targets[key], spread=known is None)

    def end(self, uid: PodUID) -> None:
        """Nothing of this pod runs any more."""
        self._started.pop(uid, None)
        for key in self._targets.pop(uid, {}):
            self._stop(key)
        self._observer.ended(uid)

    def keep(self, uids: set[PodUID]) -> None:
        """Forget all pods but these."""
        for uid in self._targets.keys() - uids:
            self.end(uid)

    def _tell_started(self, pod: Pod, status: PodStatus) -> None:
        """Who has started is not checked once more, but whoever waits for it has to know."""
        started = set(find_started(pod, status))
        for key in started - self._started.get(pod.uid, set()) - self._tasks.keys():
            self._tell(key, success=True, output="")
        if started:
            self._started[pod.uid] = started
        else:
            self._started.pop(pod.uid, None)

    def _begin(self, target: Target, *, spread: bool) -> None:
        if self._group is not None:
            key = target.key
            work = self._probe(key, rules_of(target.probe), self._first(target, spread=spread))
            name = f"{key.kind.value} of {target.pod.namespace}/{target.pod.name} {key.container}"
            self._tasks[key] = self._group.create_task(work, name=name)

    def _stop(self, key: ProbeKey) -> None:
        if (task := self._tasks.pop(key, None)) is not None:
            task.cancel()

    # One probe

    def _first(self, target: Target, *, spread: bool) -> float:
        """Seconds until the first check; all those that ran before are not checked at once."""
        rules = rules_of(target.probe)
        age = self._clock.now() - target.started_at.unix_nanos()
        due = first_due(rules, age / _SECOND)
        return max(due, rules.period * self._random()) if spread else due

    async def _probe(self, key: ProbeKey, rules: Rules, first: float) -> None:
        """Check once in a period, until there is nothing more to find out."""
        await self._clock.wait(first)
        row = Row()
        while not row.on_hold:
            # By waiting, not by the time of day: a clock that is set must not matter.
            period = asyncio.ensure_future(self._clock.wait(rules.period))
            try:
                row = await self._check_alone(key, rules, row)
                if not row.on_hold:
                    await period
            finally:
                period.cancel()

    async def _check_alone(self, key: ProbeKey, rules: Rules, row: Row) -> Row:
        """Check once; what goes wrong with one is not to end the probes of all others."""
        try:
            return await self._check_once(key, rules, row)
        except Exception as error:
            logger.exception("check broke: uid=%s container=%s", key.uid, key.container)
            self._tell_error(key, CannotCheckError(str(error) or type(error).__name__))
            return row

    async def _check_once(self, key: ProbeKey, rules: Rules, row: Row) -> Row:
        elapsed, target = Elapsed(self._clock), self._targets[key.uid][key]
        checked = await self._try(key)
        outcome = _outcome(checked)
        self._observer.checked(target, outcome, elapsed.seconds())
        counted = count(key.kind, rules, row, outcome)
        if counted.verdict is not None:
            self._tell(key, success=counted.verdict, output=checked.output if checked else "")
        return counted.row

    async def _try(self, key: ProbeKey) -> Checked | None:
        """Check, and tell about it if it failed; None: it could not be made."""
        for left in reversed(range(_TRIES)):
            try:
                checked = await self._check(self._targets[key.uid][key])
            except CannotCheckError as error:
                if not left:
                    self._tell_error(key, error)
            else:
                self._tell_check(key, checked)
                return checked
        return None

    def _tell(self, key: ProbeKey, *, success: bool, output: str) -> None:
        self._on_result(
            ProbeResult(
                uid=key.uid,
                container=key.container,
                container_id=key.container_id,
                probe=key.kind.value,
                success=success,
                output=output,
            )
        )

    def _tell_check(self, key: ProbeKey, checked: Checked) -> None:
        if not checked.success:
            self._warn(key, reasons.UNHEALTHY, f"failed: {checked.output}")
        elif checked.doubtful:
            self._warn(key, reasons.PROBE_WARNING, f"warning: {checked.output}")

    def _tell_error(self, key: ProbeKey, error: CannotCheckError) -> None:
        what = f"errored and resulted in {error.state} state: {error}"
        self._warn(key, reasons.UNHEALTHY, what)

    def _warn(self, key: ProbeKey, reason: str, what: str) -> None:
        about = container_reference(self._targets[key.uid][key].pod, key.container)
        self._recorder.warn(about, reason, f"{key.kind.value.capitalize()} probe {what}")


def _outcome(checked: Checked | None) -> Outcome:
    if checked is None:
        return Outcome.UNKNOWN
    return Outcome.SUCCESS if checked.success else Outcome.FAILURE
