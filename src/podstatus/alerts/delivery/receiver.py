"""Tells one receiver what it has yet to be told, for as long as that takes."""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence

from podstatus.alerts.delivery.persister import Keeper
from podstatus.alerts.delivery.queue import Progress, ReceiverBook, receiver_name
from podstatus.alerts.delivery.retry_schedule import Pace
from podstatus.alerts.delivery.sender import Attempts
from podstatus.alerts.model import Action, Alert, AlertId
from podstatus.alerts.ports import (
    BatchDeed,
    Deed,
    DeedError,
    DeliveryState,
    NotReachedError,
    TransientDeedError,
)
from podstatus.alerts.rules.action_kinds import CHANGING
from podstatus.base.aio import wait_event_or_timeout
from podstatus.base.clock import Clock, Elapsed
from podstatus.base.failure_log import FailureLog

logger = logging.getLogger(__name__)

_FIRST_SECONDS, _MOST_SECONDS = 1.0, 300.0
"""Between two tries, after the first failure and after many."""
_SECOND = 1_000_000_000


class Receiver:
    """One receiver: a kind of action with its options. For one event loop."""

    def __init__(
        self,
        action: Action,
        deed: Deed | BatchDeed,
        *,
        keeper: Keeper,
        clock: Clock,
        random: Callable[[], float],
    ) -> None:
        self.action = action
        self._attempts = Attempts(action, deed, clock=clock)
        self._keeper = keeper
        self._clock = clock
        self._elapsed = Elapsed(clock)
        self._random = random
        self.book = ReceiverBook(self._got_on)
        self._news = asyncio.Event()
        self._again = self._next_again()
        """When those that fire are to be told again."""
        most = min(_MOST_SECONDS, self._attempts.again_seconds)
        self._pace = Pace(first_seconds=_FIRST_SECONDS, most_seconds=most)
        self._stuck: set[AlertId] = set()
        """What failed, until it may be tried again."""
        self._name = receiver_name(action)
        self._trouble = FailureLog(logger, f"telling {self._name}", expected=DeedError)
        self._refusal = ""
        self._unwelcome: set[AlertId] = set()
        """What was told, and refused when it was told again."""
        self._is_ending = False

    @property
    def is_trying(self) -> bool:
        """Whether the receiver may be hearing something now."""
        return self._attempts.is_trying

    @property
    def state(self) -> DeliveryState:
        """How it fares."""
        error = self._trouble.error
        return DeliveryState(
            name=self._name,
            delivered=self.book.delivered,
            waiting=self.book.waiting,
            dropped=self.book.dropped,
            problem=self._refusal if error is None else str(error),
        )

    def tell(self, alert: Alert) -> None:
        """An alert fires, or is resolved."""
        if self.book.tell(alert):
            self._news.set()

    def restore(self, alert: Alert, progress: Progress) -> None:
        """Take up where another process has stopped."""
        if progress == "refused" and self.action.kind not in CHANGING:
            # What was to blame may be mended. But nothing is changed because an agent restarts.
            self._got_on(alert.id, None)
            return
        self.book.restore(alert, progress)
        self._again = self._now()
        self._news.set()

    def end(self) -> None:
        """Stop after the try that is under way, if there is one; else it may be cancelled."""
        self._is_ending = True

    async def run(self) -> None:
        """Tell until it is ended or cancelled."""
        while not self._is_ending:
            try:
                await self._rest()
                await self.tell_once()
            except Exception as error:  # noqa: BLE001 - a mistake of ours silences no receiver
                self._trouble.failed(error)
                await self._clock.wait(_FIRST_SECONDS)
                # To look whether it is over, though there may be nothing to tell.
                self._news.set()

    async def tell_once(self) -> None:
        """Tell what waits and may be tried, and again what fires if it is time for that."""
        self._news.clear()
        now = self._now()
        if is_due := self._pace.is_due(now):
            self._stuck.clear()
        try:
            self.book.expire(self._clock.now())
            while alerts := self._next():
                await self._tell_news(alerts)
            if is_due and self._is_again_due(now):
                await self._tell_again()
            if not self._stuck:
                self._trouble.recovered()
        except TransientDeedError as error:
            self._failed(error, error.after_seconds)
        except Exception as error:  # noqa: BLE001 - a mistake of ours ends no node; it is logged
            self._failed(error)
        await self._keeper.written()

    def _now(self) -> int:
        """Nanoseconds since it was made: somebody may set the clock back by a day."""
        return int(self._elapsed.seconds() * _SECOND)

    async def _rest(self) -> None:
        now = self._now()
        if self._pace.is_due(now):
            if not self._stuck:
                await wait_event_or_timeout(self._news, self._clock, self._seconds_until_again(now))
            return
        await self._clock.wait(self._pace.news_seconds(now))
        if self._next():
            # It came together with one that failed.
            return
        left = self._pace.seconds(self._now())
        await wait_event_or_timeout(self._news, self._clock, left)

    def _is_again_due(self, now: int) -> bool:
        is_wanted = math.isfinite(self._attempts.again_seconds) and not self._is_ending
        return is_wanted and now >= self._again

    def _next_again(self) -> float:
        return self._now() + self._attempts.again_seconds * _SECOND

    def _seconds_until_again(self, now: int) -> float | None:
        is_needed = math.isfinite(self._attempts.again_seconds) and self.book.firing()
        return (self._again - now) / _SECOND if is_needed else None

    def _next(self) -> list[Alert]:
        return [] if self._is_ending else self.book.take(self._attempts.most, self._stuck)

    async def _tell_news(self, alerts: Sequence[Alert]) -> None:
        """Tell the receiver, and note what has become of it."""
        first = self.book.trying(alerts)
        # So that after a kill at most what is under way is told twice.
        await self._keeper.written()
        try:
            await self._attempts.tell(alerts)
        except DeedError as error:
            if not isinstance(error, TransientDeedError):
                await self._refused(alerts, error)
                return
            self.book.failed(alerts, first if isinstance(error, NotReachedError) else ())
            self._stuck.update(alert.id for alert in alerts)
            raise
        except Exception:
            self.book.failed(alerts, ())
            self._stuck.update(alert.id for alert in alerts)
            raise
        self.book.succeeded(alerts)
        self._refusal = ""
        self._pace.succeeded(self._now(), is_clear=not self._stuck)

    async def _refused(self, alerts: Sequence[Alert], error: DeedError) -> None:
        """One of many may be to blame: each half is tried alone."""
        if len(alerts) > 1:
            await self._tell_news(alerts[: len(alerts) // 2])
            await self._tell_news(alerts[len(alerts) // 2 :])
            return
        (alert,) = alerts
        self._refusal = str(error)
        self.book.refused(alert)
        self._log_refusal(alert, error)

    async def _tell_again(self) -> None:
        """Tell of all that fire, though nothing has changed."""
        firing, most = self.book.firing(), self._attempts.most
        unwelcome: set[AlertId] = set()
        for first in range(0, len(firing), most):
            unwelcome |= await self._remind(firing[first : first + most])
        if self._unwelcome and not unwelcome:
            self._refusal = ""
        self._unwelcome = unwelcome
        self._again = self._next_again()
        self._pace.succeeded(self._now(), is_clear=not self._stuck)

    async def _remind(self, alerts: Sequence[Alert]) -> set[AlertId]:
        """Tell of these again; those that are refused now. They are found as among news."""
        try:
            await self._attempts.tell(alerts)
        except Exception as error:
            if not isinstance(error, DeedError) or isinstance(error, TransientDeedError):
                # What always fails comes last: the others are told before it.
                self.book.put_behind(alerts)
                raise
            if len(alerts) > 1:
                half = len(alerts) // 2
                return await self._remind(alerts[:half]) | await self._remind(alerts[half:])
            self._refusal = str(error)
            if alerts[0].id not in self._unwelcome:
                self._log_refusal(alerts[0], error)
            return {alerts[0].id}
        return set()

    def _log_refusal(self, alert: Alert, error: DeedError) -> None:
        told = "alert not taken: receiver=%s rule=%s id=%s state=%s error=%s"
        logger.error(told, self._name, alert.rule, alert.id, alert.state, error)

    def _failed(self, error: Exception, after_seconds: float = 0.0) -> None:
        now = self._now()
        self._pace.failed(now, self._random(), after_seconds)
        # Who was away may have forgotten what fires.
        self._again = min(self._again, now)
        self._trouble.failed(error)

    def _got_on(self, id_: AlertId, progress: Progress | None) -> None:
        self._keeper.progress(id_, self.action, progress)
