"""Tells one receiver what it has yet to be told, for as long as that takes."""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence

from podstatus.alerts.delivery.persister import AlertPersister
from podstatus.alerts.delivery.queue import DeliveryProgress, DeliveryQueue, receiver_name
from podstatus.alerts.delivery.retry_schedule import RetrySchedule
from podstatus.alerts.delivery.sender import AlertSender
from podstatus.alerts.model import Action, Alert, AlertId
from podstatus.alerts.ports import (
    ActionError,
    AlertNotifier,
    BatchAlertNotifier,
    DeliveryState,
    NotSentError,
    RetryableError,
)
from podstatus.alerts.rules.action_kinds import REMEDIATION_KINDS
from podstatus.base.aio import wait_event_or_timeout
from podstatus.base.clock import Clock, Elapsed
from podstatus.base.failure_log import FailureLog

logger = logging.getLogger(__name__)

_FIRST_RETRY_SECONDS, _MAX_RETRY_SECONDS = 1.0, 300.0
"""Between two tries, after the first failure and after many."""
_SECOND = 1_000_000_000


class Receiver:
    """One receiver: a kind of action with its options. For one event loop."""

    def __init__(
        self,
        action: Action,
        notifier: AlertNotifier | BatchAlertNotifier,
        *,
        persister: AlertPersister,
        clock: Clock,
        random: Callable[[], float],
    ) -> None:
        self.action = action
        self._sender = AlertSender(action, notifier, clock=clock)
        self._persister = persister
        self._clock = clock
        self._elapsed = Elapsed(clock)
        self._random = random
        self.queue = DeliveryQueue(self._on_progress)
        self._wakeup = asyncio.Event()
        self._resend_at = self._next_resend()
        """When those that fire are to be told again."""
        most = min(_MAX_RETRY_SECONDS, self._sender.resend_seconds)
        self._retry_schedule = RetrySchedule(first_seconds=_FIRST_RETRY_SECONDS, max_seconds=most)
        self._blocked: set[AlertId] = set()
        """What failed, until it may be tried again."""
        self._name = receiver_name(action)
        self._failures = FailureLog(logger, f"telling {self._name}", expected=ActionError)
        self._rejection = ""
        self._rejected_resends: set[AlertId] = set()
        """What was told, and refused when it was told again."""
        self._is_stopping = False

    @property
    def is_sending(self) -> bool:
        """Whether the receiver may be hearing something now."""
        return self._sender.is_sending

    @property
    def state(self) -> DeliveryState:
        """How it fares."""
        error = self._failures.error
        return DeliveryState(
            name=self._name,
            delivered=self.queue.delivered,
            waiting=self.queue.waiting,
            dropped=self.queue.dropped,
            problem=self._rejection if error is None else str(error),
        )

    def add(self, alert: Alert) -> None:
        """An alert fires, or is resolved."""
        if self.queue.add(alert):
            self._wakeup.set()

    def restore(self, alert: Alert, progress: DeliveryProgress) -> None:
        """Take up where another process has stopped."""
        if progress == "refused" and self.action.kind not in REMEDIATION_KINDS:
            # What was to blame may be mended. But nothing is changed because an agent restarts.
            self._on_progress(alert.id, None)
            return
        self.queue.restore(alert, progress)
        self._resend_at = self._now()
        self._wakeup.set()

    def stop(self) -> None:
        """Stop after the try that is under way, if there is one; else it may be cancelled."""
        self._is_stopping = True

    async def run(self) -> None:
        """Tell until it is ended or cancelled."""
        while not self._is_stopping:
            try:
                await self._wait_for_work()
                await self.send_once()
            except Exception as error:  # noqa: BLE001 - a mistake of ours silences no receiver
                self._failures.failed(error)
                await self._clock.wait(_FIRST_RETRY_SECONDS)
                # To look whether it is over, though there may be nothing to tell.
                self._wakeup.set()

    async def send_once(self) -> None:
        """Tell what waits and may be tried, and again what fires if it is time for that."""
        self._wakeup.clear()
        now = self._now()
        if is_due := self._retry_schedule.is_due(now):
            self._blocked.clear()
        try:
            self.queue.expire(self._clock.now())
            while alerts := self._next_batch():
                await self._send_batch(alerts)
            if is_due and self._is_resend_due(now):
                await self._resend_all()
            if not self._blocked:
                self._failures.recovered()
        except RetryableError as error:
            self._on_failure(error, error.retry_after_seconds)
        except Exception as error:  # noqa: BLE001 - a mistake of ours ends no node; it is logged
            self._on_failure(error)
        await self._persister.flushed()

    def _now(self) -> int:
        """Nanoseconds since it was made: somebody may set the clock back by a day."""
        return int(self._elapsed.seconds() * _SECOND)

    async def _wait_for_work(self) -> None:
        now = self._now()
        if self._retry_schedule.is_due(now):
            if not self._blocked:
                await wait_event_or_timeout(
                    self._wakeup, self._clock, self._seconds_until_resend(now)
                )
            return
        await self._clock.wait(self._retry_schedule.seconds_until_new(now))
        if self._next_batch():
            # It came together with one that failed.
            return
        left = self._retry_schedule.seconds_until_retry(self._now())
        await wait_event_or_timeout(self._wakeup, self._clock, left)

    def _is_resend_due(self, now: int) -> bool:
        is_wanted = math.isfinite(self._sender.resend_seconds) and not self._is_stopping
        return is_wanted and now >= self._resend_at

    def _next_resend(self) -> float:
        return self._now() + self._sender.resend_seconds * _SECOND

    def _seconds_until_resend(self, now: int) -> float | None:
        is_needed = math.isfinite(self._sender.resend_seconds) and self.queue.firing()
        return (self._resend_at - now) / _SECOND if is_needed else None

    def _next_batch(self) -> list[Alert]:
        return (
            []
            if self._is_stopping
            else self.queue.next_batch(self._sender.max_batch, self._blocked)
        )

    async def _send_batch(self, alerts: Sequence[Alert]) -> None:
        """Tell the receiver, and note what has become of it."""
        first = self.queue.mark_sending(alerts)
        # So that after a kill at most what is under way is told twice.
        await self._persister.flushed()
        try:
            await self._sender.send(alerts)
        except ActionError as error:
            if not isinstance(error, RetryableError):
                await self._split_or_reject(alerts, error)
                return
            self.queue.failed(alerts, first if isinstance(error, NotSentError) else ())
            self._blocked.update(alert.id for alert in alerts)
            raise
        except Exception:
            self.queue.failed(alerts, ())
            self._blocked.update(alert.id for alert in alerts)
            raise
        self.queue.succeeded(alerts)
        self._rejection = ""
        self._retry_schedule.succeeded(self._now(), is_clear=not self._blocked)

    async def _split_or_reject(self, alerts: Sequence[Alert], error: ActionError) -> None:
        """One of many may be to blame: each half is tried alone."""
        if len(alerts) > 1:
            await self._send_batch(alerts[: len(alerts) // 2])
            await self._send_batch(alerts[len(alerts) // 2 :])
            return
        (alert,) = alerts
        self._rejection = str(error)
        self.queue.rejected(alert)
        self._log_rejection(alert, error)

    async def _resend_all(self) -> None:
        """Tell of all that fire, though nothing has changed."""
        firing, most = self.queue.firing(), self._sender.max_batch
        unwelcome: set[AlertId] = set()
        for first in range(0, len(firing), most):
            unwelcome |= await self._resend(firing[first : first + most])
        if self._rejected_resends and not unwelcome:
            self._rejection = ""
        self._rejected_resends = unwelcome
        self._resend_at = self._next_resend()
        self._retry_schedule.succeeded(self._now(), is_clear=not self._blocked)

    async def _resend(self, alerts: Sequence[Alert]) -> set[AlertId]:
        """Tell of these again; those that are refused now. They are found as among news."""
        try:
            await self._sender.send(alerts)
        except Exception as error:
            if not isinstance(error, ActionError) or isinstance(error, RetryableError):
                # What always fails comes last: the others are told before it.
                self.queue.move_to_back(alerts)
                raise
            if len(alerts) > 1:
                half = len(alerts) // 2
                return await self._resend(alerts[:half]) | await self._resend(alerts[half:])
            self._rejection = str(error)
            if alerts[0].id not in self._rejected_resends:
                self._log_rejection(alerts[0], error)
            return {alerts[0].id}
        return set()

    def _log_rejection(self, alert: Alert, error: ActionError) -> None:
        told = "alert not taken: receiver=%s rule=%s id=%s state=%s error=%s"
        logger.error(told, self._name, alert.rule, alert.id, alert.state, error)

    def _on_failure(self, error: Exception, retry_after_seconds: float = 0.0) -> None:
        now = self._now()
        self._retry_schedule.failed(now, self._random(), retry_after_seconds)
        # Who was away may have forgotten what fires.
        self._resend_at = min(self._resend_at, now)
        self._failures.failed(error)

    def _on_progress(self, id_: AlertId, progress: DeliveryProgress | None) -> None:
        self._persister.set_progress(id_, self.action, progress)
