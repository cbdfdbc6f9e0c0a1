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
from podstatus.probes.check_result import CheckError, CheckResult
from podstatus.probes.targets import ProbeKey, ProbeTarget, find_started_probes, find_targets
from podstatus.probes.thresholds import (
    CheckOutcome,
    ProbeSettings,
    Streak,
    first_due,
    probe_settings,
    record_check,
)
from podstatus.runtime.port import ProbeResult

logger = logging.getLogger(__name__)

_SECOND = 1_000_000_000
_MAX_ATTEMPTS = 3
"""Of a check that cannot be made, at once. Upstream's."""

CheckFunction = Callable[[ProbeTarget], Awaitable[CheckResult]]
"""Checks a container once; raises CannotCheckError."""


class ProbeObserver(Protocol):
    """Who wants to know what checks come to. Must not wait."""

    def check_finished(self, target: ProbeTarget, outcome: CheckOutcome, seconds: float) -> None:
        """A check was made, or was tried in vain."""

    def pod_removed(self, uid: PodUID) -> None:
        """Nothing of this pod is checked any more."""


class _NoopProbeObserver:
    """Nobody wants to know."""

    def check_finished(self, target: ProbeTarget, outcome: CheckOutcome, seconds: float) -> None:
        """Nobody is told."""

    def pod_removed(self, uid: PodUID) -> None:
        """Nobody is told."""


class ProbeWorkers:
    """Runs the probes of all pods. For one event loop; what it is told never waits."""

    def __init__(
        self,
        check: CheckFunction,
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
        self._observer = observer or _NoopProbeObserver()
        self._group: asyncio.TaskGroup | None = None
        self._targets: dict[PodUID, dict[ProbeKey, ProbeTarget]] = {}
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
                    self._start(target, jitter=True)
            try:
                await asyncio.Event().wait()
            finally:
                self._group = None

    # What is told

    def update_pod(self, pod: Pod, status: PodStatus, *, terminating: bool = False) -> None:
        """This status is told of the pod: check what runs, and nothing else.

        `terminating`: the pod is to end, whether it was deleted or not.
        """
        targets = find_targets(pod, status, terminating=terminating)
        known = self._targets.get(pod.uid)
        self._targets[pod.uid] = targets
        self._report_started(pod, status)
        for key in (known or {}).keys() - targets.keys():
            self._stop(key)
        for key in targets.keys() - (known or {}).keys():
            # Who runs when a pod is first seen has done so before the agent came.
            self._start(targets[key], jitter=known is None)

    def remove_pod(self, uid: PodUID) -> None:
        """Nothing of this pod runs any more."""
        self._started.pop(uid, None)
        for key in self._targets.pop(uid, {}):
            self._stop(key)
        self._observer.pod_removed(uid)

    def retain_only(self, uids: set[PodUID]) -> None:
        """Forget all pods but these."""
        for uid in self._targets.keys() - uids:
            self.remove_pod(uid)

    def _report_started(self, pod: Pod, status: PodStatus) -> None:
        """Who has started is not checked once more, but whoever waits for it has to know."""
        started = set(find_started_probes(pod, status))
        for key in started - self._started.get(pod.uid, set()) - self._tasks.keys():
            self._report_result(key, success=True, output="")
        if started:
            self._started[pod.uid] = started
        else:
            self._started.pop(pod.uid, None)

    def _start(self, target: ProbeTarget, *, jitter: bool) -> None:
        if self._group is not None:
            key = target.key
            work = self._run_probe(
                key, probe_settings(target.probe), self._initial_delay(target, jitter=jitter)
            )
            name = f"{key.kind.value} of {target.pod.namespace}/{target.pod.name} {key.container}"
            self._tasks[key] = self._group.create_task(work, name=name)

    def _stop(self, key: ProbeKey) -> None:
        if (task := self._tasks.pop(key, None)) is not None:
            task.cancel()

    # One probe

    def _initial_delay(self, target: ProbeTarget, *, jitter: bool) -> float:
        """Seconds until the first check; all those that ran before are not checked at once."""
        rules = probe_settings(target.probe)
        age = self._clock.now() - target.started_at.unix_nanos()
        due = first_due(rules, age / _SECOND)
        return max(due, rules.period * self._random()) if jitter else due

    async def _run_probe(
        self, key: ProbeKey, settings: ProbeSettings, initial_delay: float
    ) -> None:
        """Check once in a period, until there is nothing more to find out."""
        await self._clock.wait(initial_delay)
        row = Streak()
        while not row.done:
            # By waiting, not by the time of day: a clock that is set must not matter.
            period = asyncio.ensure_future(self._clock.wait(settings.period))
            try:
                row = await self._check_safely(key, settings, row)
                if not row.done:
                    await period
            finally:
                period.cancel()

    async def _check_safely(self, key: ProbeKey, settings: ProbeSettings, streak: Streak) -> Streak:
        """Check once; what goes wrong with one is not to end the probes of all others."""
        try:
            return await self._check_once(key, settings, streak)
        except Exception as error:
            logger.exception("check broke: uid=%s container=%s", key.uid, key.container)
            self._record_error(key, CheckError(str(error) or type(error).__name__))
            return streak

    async def _check_once(self, key: ProbeKey, settings: ProbeSettings, streak: Streak) -> Streak:
        elapsed, target = Elapsed(self._clock), self._targets[key.uid][key]
        checked = await self._check_with_retries(key)
        outcome = _outcome(checked)
        self._observer.check_finished(target, outcome, elapsed.seconds())
        counted = record_check(key.kind, settings, streak, outcome)
        if counted.result is not None:
            self._report_result(
                key, success=counted.result, output=checked.output if checked else ""
            )
        return counted.streak

    async def _check_with_retries(self, key: ProbeKey) -> CheckResult | None:
        """Check, and tell about it if it failed; None: it could not be made."""
        for left in reversed(range(_MAX_ATTEMPTS)):
            try:
                checked = await self._check(self._targets[key.uid][key])
            except CheckError as error:
                if not left:
                    self._record_error(key, error)
            else:
                self._record_check(key, checked)
                return checked
        return None

    def _report_result(self, key: ProbeKey, *, success: bool, output: str) -> None:
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

    def _record_check(self, key: ProbeKey, checked: CheckResult) -> None:
        if not checked.success:
            self._warn(key, reasons.UNHEALTHY, f"failed: {checked.output}")
        elif checked.warning:
            self._warn(key, reasons.PROBE_WARNING, f"warning: {checked.output}")

    def _record_error(self, key: ProbeKey, error: CheckError) -> None:
        what = f"errored and resulted in {error.state} state: {error}"
        self._warn(key, reasons.UNHEALTHY, what)

    def _warn(self, key: ProbeKey, reason: str, message: str) -> None:
        about = container_reference(self._targets[key.uid][key].pod, key.container)
        self._recorder.warn(about, reason, f"{key.kind.value.capitalize()} probe {message}")


def _outcome(checked: CheckResult | None) -> CheckOutcome:
    if checked is None:
        return CheckOutcome.UNKNOWN
    return CheckOutcome.SUCCESS if checked.success else CheckOutcome.FAILURE
