"""Tries to tell one receiver of some alerts: each is bounded in time, and one is made at a time."""

import math
from collections.abc import Sequence

from podstatus.alerts.model import Action, Alert
from podstatus.alerts.ports import AlertNotifier, BatchAlertNotifier, RetryableError
from podstatus.alerts.rules.action_kinds import SEND_TIMEOUT_SECONDS
from podstatus.base.aio import run_with_timeout
from podstatus.base.clock import Clock


class AlertSender:
    """What a receiver is told with, be it one alert at a time or many."""

    def __init__(
        self, action: Action, notifier: AlertNotifier | BatchAlertNotifier, *, clock: Clock
    ) -> None:
        self._action = action
        self._notifier = (
            notifier if isinstance(notifier, BatchAlertNotifier) else _SingleAlertBatch(notifier)
        )
        self._clock = clock
        self.is_sending = False
        """Whether the receiver may be hearing something now."""

    @property
    def max_batch(self) -> int:
        """Alerts at once."""
        return self._notifier.max_batch

    @property
    def resend_seconds(self) -> float:
        """So often it wants to hear of what fires; infinite: once is enough."""
        return self._notifier.resend_seconds

    async def send(self, alerts: Sequence[Alert]) -> None:
        """Tell it of all of them, once. Raises DeedError."""
        self.is_sending = True
        try:
            await run_with_timeout(
                SEND_TIMEOUT_SECONDS, self._clock, self._notifier.send_batch(self._action, alerts)
            )
        except TimeoutError as error:
            raise RetryableError(f"nothing came of it within {SEND_TIMEOUT_SECONDS:g} s") from error
        finally:
            self.is_sending = False


class _SingleAlertBatch:
    """A deed that takes one alert at a time, and hears of it once."""

    max_batch = 1
    resend_seconds = math.inf

    def __init__(self, notifier: AlertNotifier) -> None:
        self._notifier = notifier

    async def send_batch(self, action: Action, alerts: Sequence[Alert]) -> None:
        """Do it."""
        for alert in alerts:
            await self._notifier.send(action, alert)
