"""Deliver the queued alerts of one receiver, with retries."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence

from podstatus.alerts.delivery.decide.queue import DeliveryProgress, DeliveryQueue, receiver_name
from podstatus.alerts.delivery.decide.retry_schedule import RetrySchedule
from podstatus.alerts.delivery.persister import AlertPersister
from podstatus.alerts.model import Action, Alert, AlertId
from podstatus.alerts.ports import (
    ActionError,
    AlertNotifier,
    BatchAlertNotifier,
    DeliveryState,
    NotSentError,
    RetryableError,
)
from podstatus.alerts.rules.action_kinds import REMEDIATION_KINDS, SEND_TIMEOUT_SECONDS
from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.base.timeouts import run_with_timeout, wait_event_or_timeout

logger = logging.getLogger(__name__)

_FIRST_RETRY_SECONDS, _MAX_RETRY_SECONDS = 1.0, 300.0
"""Retry back-off: initial delay and upper bound."""
_STANDBY_CHECK_SECONDS = 60.0
"""Between two checks for resolutions that are too old to be sent after a takeover."""
_LEASE_CHECK_SECONDS = 0.1
_SECOND = 1_000_000_000


class Receiver:
    """One receiver: an action kind with its options. For one event loop."""

    def __init__(
        self,
        action: Action,
        notifier: AlertNotifier | BatchAlertNotifier,
        *,
        persister: AlertPersister,
        clock: Clock,
        random: Callable[[], float],
        may_send: Callable[[], bool],
    ) -> None:
        """`may_send` is asked right before each attempt; see `stand_by`."""
        self.action = action
        self._notifier = (
            notifier if isinstance(notifier, BatchAlertNotifier) else _SingleAlertBatch(notifier)
        )
        self._persister = persister
        self._clock = clock
        self._random = random
        self._may_send = may_send
        self.queue = DeliveryQueue(self._on_progress)
        self._wakeup = asyncio.Event()
        self._resend_at = self._next_resend()
        """When the firing alerts are sent again."""
        self._retry_schedule = self._new_retry_schedule()
        self._blocked: set[AlertId] = set()
        """Alerts that failed, until they may be retried."""
        self._name = receiver_name(action)
        self._failures = FailureLog(logger, f"sending to {self._name}", expected=ActionError)
        self._rejection = ""
        self._rejected_resends: set[AlertId] = set()
        """Alerts that were accepted first and rejected when they were repeated."""
        self._is_stopping = False
        self._leading = asyncio.Event()
        self._leading.set()
        self._attempt: asyncio.Task[None] | None = None
        """The attempt in flight."""
        self.is_sending = False
        """True while a delivery is in flight."""

    @property
    def state(self) -> DeliveryState:
        """Status of the receiver: counts, and the latest error."""
        error = self._failures.error
        return DeliveryState(
            name=self._name,
            delivered=self.queue.delivered,
            waiting=self.queue.waiting,
            dropped=self.queue.dropped,
            problem=self._rejection if error is None else str(error),
        )

    def add(self, alert: Alert) -> None:
        if self.queue.add(alert, self._clock.monotonic()):
            self._wakeup.set()

    def restore(self, alert: Alert, progress: DeliveryProgress) -> None:
        """Continue with the progress of the previous process."""
        if progress == "refused" and self.action.kind not in REMEDIATION_KINDS:
            # The cause may be fixed by now. But a restart of the agent must not trigger a
            # remediation.
            self._on_progress(alert.id, None)
            return
        now = self._clock.monotonic()
        age = max(0, self._clock.now() - alert.resolved) if alert.resolved else 0
        self.queue.restore(alert, progress, now - age)
        self._resend_at = now
        self._wakeup.set()

    def stand_by(self) -> None:
        """Let another process notify: end the attempt in flight, and send nothing."""
        self._leading.clear()
        if self._attempt is not None:
            self._attempt.cancel()
        self.queue.stand_by()

    def take_over(self) -> None:
        """Notify from now on, starting with what the former leader may not have sent."""
        self.queue.take_over(self._clock.monotonic())
        self._retry_schedule = self._new_retry_schedule()
        self._blocked.clear()
        self._resend_at = self._next_resend()
        self._leading.set()
        self._wakeup.set()

    def stop(self) -> None:
        """Stop after the delivery in flight; without one, the task may be cancelled."""
        self._is_stopping = True

    async def run(self) -> None:
        while not self._is_stopping:
            try:
                await self._wait_until_leading()
                await self._wait_for_work()
                await self.send_once()
            except Exception as error:  # noqa: BLE001 - logged and retried
                self._failures.failed(error)
                await self._clock.wait(_FIRST_RETRY_SECONDS)
                # Check again whether it has recovered, even if nothing is queued.
                self._wakeup.set()

    async def send_once(self) -> None:
        """Send what is queued and due, and repeat the firing alerts when that is due."""
        if not self._is_leading:
            return
        self._wakeup.clear()
        now = self._clock.monotonic()
        if is_due := self._retry_schedule.is_due(now):
            self._blocked.clear()
        try:
            self.queue.expire(now)
            while alerts := self._next_batch():
                await self._send_splitting(alerts, self._send_new, self._reject_new)
            if is_due and self._is_resend_due(now):
                await self._resend_all()
            if not self._blocked:
                self._failures.recovered()
        except _StoodByError:
            logger.info("delivery ended, another process notifies: receiver=%s", self._name)
        except RetryableError as error:
            self._on_failure(error, error.retry_after_seconds)
        except Exception as error:  # noqa: BLE001 - logged and retried
            self._on_failure(error)
        await self._persister.flushed()

    def _new_retry_schedule(self) -> RetrySchedule:
        max_retry = min(_MAX_RETRY_SECONDS, self._notifier.resend_seconds)
        return RetrySchedule(first_seconds=_FIRST_RETRY_SECONDS, max_seconds=max_retry)

    @property
    def _is_leading(self) -> bool:
        return self._leading.is_set() and self._may_send()

    async def _wait_until_leading(self) -> None:
        while not self._is_leading:
            if self._leading.is_set():
                # The lease has run out; `stand_by` follows, or its renewal.
                await self._clock.wait(_LEASE_CHECK_SECONDS)
                continue
            await wait_event_or_timeout(self._leading, self._clock, _STANDBY_CHECK_SECONDS)
            self.queue.expire(self._clock.monotonic())

    async def _wait_for_work(self) -> None:
        now = self._clock.monotonic()
        if self._retry_schedule.is_due(now):
            if not self._blocked:
                await wait_event_or_timeout(
                    self._wakeup, self._clock, self._seconds_until_resend(now)
                )
            return
        await self._clock.wait(self._retry_schedule.seconds_until_new(now))
        if self._next_batch():
            # It was queued together with an alert that failed.
            return
        left = self._retry_schedule.seconds_until_retry(self._clock.monotonic())
        await wait_event_or_timeout(self._wakeup, self._clock, left)

    def _is_resend_due(self, now: int) -> bool:
        is_enabled = math.isfinite(self._notifier.resend_seconds) and not self._is_stopping
        return is_enabled and self._is_leading and now >= self._resend_at

    def _next_resend(self) -> float:
        return self._clock.monotonic() + self._notifier.resend_seconds * _SECOND

    def _seconds_until_resend(self, now: int) -> float | None:
        is_needed = math.isfinite(self._notifier.resend_seconds) and self.queue.firing()
        return (self._resend_at - now) / _SECOND if is_needed else None

    def _next_batch(self) -> list[Alert]:
        return (
            []
            if self._is_stopping or not self._is_leading
            else self.queue.next_batch(self._notifier.max_batch, self._blocked)
        )

    async def _send_splitting(
        self,
        alerts: Sequence[Alert],
        attempt: Callable[[Sequence[Alert]], Awaitable[None]],
        on_rejected: Callable[[Alert, ActionError], None],
    ) -> None:
        """Send a batch; split a rejected one in halves, to find the alerts that are rejected."""
        try:
            await attempt(alerts)
        except RetryableError:
            raise
        except ActionError as error:
            if len(alerts) == 1:
                self._rejection = str(error)
                on_rejected(alerts[0], error)
                return
            half = len(alerts) // 2
            await self._send_splitting(alerts[:half], attempt, on_rejected)
            await self._send_splitting(alerts[half:], attempt, on_rejected)

    async def _send_new(self, alerts: Sequence[Alert]) -> None:
        """Send alerts of the queue and record the outcome, unless they are rejected."""
        first = self.queue.mark_sending(alerts)
        # So that a kill repeats at most the delivery in flight.
        await self._persister.flushed()
        try:
            await self._send(alerts)
        except Exception as error:
            if _is_temporary(error):
                self.queue.failed(alerts, first if isinstance(error, NotSentError) else ())
                self._blocked.update(alert.id for alert in alerts)
            raise
        self.queue.succeeded(alerts)
        self._rejection = ""
        self._retry_schedule.succeeded(self._clock.monotonic(), is_clear=not self._blocked)

    def _reject_new(self, alert: Alert, error: ActionError) -> None:
        self.queue.rejected(alert)
        self._log_rejection(alert, error)

    async def _resend_all(self) -> None:
        firing, size = self.queue.firing(), self._notifier.max_batch
        rejected: set[AlertId] = set()

        def reject(alert: Alert, error: ActionError) -> None:
            rejected.add(alert.id)
            if alert.id not in self._rejected_resends:
                self._log_rejection(alert, error)

        for first in range(0, len(firing), size):
            await self._send_splitting(firing[first : first + size], self._resend, reject)
        if self._rejected_resends and not rejected:
            self._rejection = ""
        self._rejected_resends = rejected
        self._resend_at = self._next_resend()
        self._retry_schedule.succeeded(self._clock.monotonic(), is_clear=not self._blocked)

    async def _resend(self, alerts: Sequence[Alert]) -> None:
        try:
            await self._send(alerts)
        except Exception as error:
            if _is_temporary(error):
                # An alert that always fails goes last, so that the others are sent first.
                self.queue.move_to_back(alerts)
            raise

    async def _send(self, alerts: Sequence[Alert]) -> None:
        """Send all alerts in one attempt, with a timeout. Raises ActionError."""
        if not self._is_leading:
            raise _StoodByError
        self.is_sending = True
        sending = run_with_timeout(
            SEND_TIMEOUT_SECONDS, self._clock, self._notifier.send_batch(self.action, alerts)
        )
        self._attempt = asyncio.ensure_future(sending)
        try:
            await self._attempt
        except TimeoutError as error:
            raise RetryableError(f"not sent within {SEND_TIMEOUT_SECONDS:g} s") from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if self._leading.is_set() or (task is not None and task.cancelling()):
                raise
            raise _StoodByError from error
        finally:
            self.is_sending, self._attempt = False, None

    def _log_rejection(self, alert: Alert, error: ActionError) -> None:
        message = "alert rejected: receiver=%s rule=%s id=%s state=%s error=%s"
        logger.error(message, self._name, alert.rule, alert.id, alert.state, error)

    def _on_failure(self, error: Exception, retry_after_seconds: float = 0.0) -> None:
        now = self._clock.monotonic()
        self._retry_schedule.failed(now, self._random(), retry_after_seconds)
        # A receiver that was down may have lost its state.
        self._resend_at = min(self._resend_at, now)
        self._failures.failed(error)

    def _on_progress(self, id_: AlertId, progress: DeliveryProgress | None) -> None:
        self._persister.set_progress(id_, self.action, progress)


def _is_temporary(error: Exception) -> bool:
    """Whether the same alerts are to be sent again, as after a bug in a notifier."""
    return isinstance(error, RetryableError) or not isinstance(error, ActionError)


class _StoodByError(RetryableError):
    """The attempt ended because another process notifies from now on."""

    def __init__(self) -> None:
        super().__init__("another process notifies from now on")


class _SingleAlertBatch:
    """A notifier for single alerts as a batch notifier without repetition."""

    max_batch = 1
    resend_seconds = math.inf

    def __init__(self, notifier: AlertNotifier) -> None:
        self._notifier = notifier

    async def send_batch(self, action: Action, alerts: Sequence[Alert]) -> None:
        for alert in alerts:
            await self._notifier.send(action, alert)
