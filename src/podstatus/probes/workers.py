"""One task per active probe: it checks the container, counts results and reports them.

    update_pod(pod, status) ──► targets ──► a task per probe of a running container
                                            check ─► streak ─► result ─► on_result
                                              └─► event, on failure

Upstream: pkg/kubelet/prober v1.36.4.
"""

import asyncio
import logging
import random as chance
from collections.abc import Awaitable, Callable

from podstatus.base.clock import Clock
from podstatus.events import reasons
from podstatus.events.object_references import container_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.probes.decide.check_result import CheckError, CheckResult
from podstatus.probes.decide.targets import ProbeKey, ProbeTarget, find_started_probes, find_targets
from podstatus.probes.decide.thresholds import (
    CheckOutcome,
    ProbeSettings,
    Streak,
    first_due,
    probe_settings,
    record_check,
)
from podstatus.probes.metrics import ProbeMetrics
from podstatus.runtime.port import ProbeResult

logger = logging.getLogger(__name__)

_SECOND = 1_000_000_000
_MAX_ATTEMPTS = 3
"""Immediate attempts of a check that raises CheckError. Upstream's value."""

CheckFunction = Callable[[ProbeTarget], Awaitable[CheckResult]]
"""Checks a container once. Raises CheckError if the result is unknown."""


class ProbeWorkers:
    """Runs the probes of all pods.

    Not thread-safe: call from the event loop. Notification methods never block.
    """

    def __init__(
        self,
        check: CheckFunction,
        recorder: EventRecorder,
        *,
        on_result: Callable[[ProbeResult], None],
        clock: Clock,
        metrics: ProbeMetrics,
        random: Callable[[], float] = chance.random,
    ) -> None:
        """`on_result` is called with every result, also if it equals the previous one."""
        self._check = check
        self._recorder = recorder
        self._on_result = on_result
        self._clock = clock
        self._random = random
        self._metrics = metrics
        self._group: asyncio.TaskGroup | None = None
        self._targets: dict[PodUID, dict[ProbeKey, ProbeTarget]] = {}
        """Targets of every pod that was seen, also of pods without an active probe."""
        self._tasks: dict[ProbeKey, asyncio.Task[None]] = {}
        """Includes tasks that are done, until their target is gone."""
        self._started: dict[PodUID, set[ProbeKey]] = {}
        """Startup probes that were reported as successful without a check."""

    async def run(self) -> None:
        """Run all probes until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for targets in self._targets.values():
                for target in targets.values():
                    self._start(target, jitter=True)
            try:
                await asyncio.Event().wait()
            finally:
                self._group = None

    # Notifications

    def update_pod(self, pod: Pod, status: PodStatus, *, terminating: bool = False) -> None:
        """Start and stop probes according to the pod's new status.

        `terminating`: the pod's containers are being stopped, whether it was deleted or not.
        """
        targets = find_targets(pod, status, terminating=terminating)
        previous = self._targets.get(pod.uid)
        self._targets[pod.uid] = targets
        self._report_started(pod, status)
        for key in (previous or {}).keys() - targets.keys():
            self._stop(key)
        for key in targets.keys() - (previous or {}).keys():
            # A container that runs when its pod is first seen was running before the agent started.
            self._start(targets[key], jitter=previous is None)

    def remove_pod(self, uid: PodUID) -> None:
        """Stop all probes of a pod whose containers have exited."""
        self._started.pop(uid, None)
        for key in self._targets.pop(uid, {}):
            self._stop(key)
        self._metrics.pods.pop(uid, None)

    def retain_only(self, uids: set[PodUID]) -> None:
        """Stop the probes of all pods except these."""
        for uid in self._targets.keys() - uids:
            self.remove_pod(uid)

    def _report_started(self, pod: Pod, status: PodStatus) -> None:
        """Report success for started containers, since their startup probes do not run again."""
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

    # A single probe

    def _initial_delay(self, target: ProbeTarget, *, jitter: bool) -> float:
        """Seconds until the first check. `jitter` spreads the checks after an agent restart."""
        settings = probe_settings(target.probe)
        age = self._clock.now() - target.started_at.unix_nanos()
        due = first_due(settings, age / _SECOND)
        return max(due, settings.period * self._random()) if jitter else due

    async def _run_probe(
        self, key: ProbeKey, settings: ProbeSettings, initial_delay: float
    ) -> None:
        """Check once per period until the result is final."""
        await self._clock.wait(initial_delay)
        streak = Streak()
        while not streak.done:
            # A timer, not the wall clock, which may be set.
            period = asyncio.ensure_future(self._clock.wait(settings.period))
            try:
                streak = await self._check_safely(key, settings, streak)
                if not streak.done:
                    await period
            finally:
                period.cancel()

    async def _check_safely(self, key: ProbeKey, settings: ProbeSettings, streak: Streak) -> Streak:
        """Check once; an unexpected exception is logged and must not stop other probes."""
        try:
            return await self._check_once(key, settings, streak)
        except Exception as error:
            logger.exception(
                "probe check raised an exception: uid=%s container=%s", key.uid, key.container
            )
            self._record_error(key, CheckError(str(error) or type(error).__name__))
            return streak

    async def _check_once(self, key: ProbeKey, settings: ProbeSettings, streak: Streak) -> Streak:
        began, target = self._clock.monotonic(), self._targets[key.uid][key]
        result = await self._check_with_retries(key)
        outcome = _outcome(result)
        seconds = (self._clock.monotonic() - began) / _SECOND
        self._metrics.check_finished(target, outcome, seconds)
        update = record_check(key.kind, settings, streak, outcome)
        if update.result is not None:
            self._report_result(key, success=update.result, output=result.output if result else "")
        return update.streak

    async def _check_with_retries(self, key: ProbeKey) -> CheckResult | None:
        """Check and record events for failures. None if every attempt raised CheckError."""
        for left in reversed(range(_MAX_ATTEMPTS)):
            try:
                result = await self._check(self._targets[key.uid][key])
            except CheckError as error:
                if not left:
                    self._record_error(key, error)
            else:
                self._record_check(key, result)
                return result
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

    def _record_check(self, key: ProbeKey, result: CheckResult) -> None:
        if not result.success:
            self._warn(key, reasons.UNHEALTHY, f"failed: {result.output}")
        elif result.warning:
            self._warn(key, reasons.PROBE_WARNING, f"warning: {result.output}")

    def _record_error(self, key: ProbeKey, error: CheckError) -> None:
        message = f"errored and resulted in {error.state} state: {error}"
        self._warn(key, reasons.UNHEALTHY, message)

    def _warn(self, key: ProbeKey, reason: str, message: str) -> None:
        about = container_reference(self._targets[key.uid][key].pod, key.container)
        self._recorder.warn(about, reason, f"{key.kind.value.capitalize()} probe {message}")


def _outcome(result: CheckResult | None) -> CheckOutcome:
    if result is None:
        return CheckOutcome.UNKNOWN
    return CheckOutcome.SUCCESS if result.success else CheckOutcome.FAILURE
