"""Send alerts to one receiver, one attempt at a time, with a timeout."""

import math
from collections.abc import Sequence

from podstatus.alerts.model import Action, Alert
from podstatus.alerts.ports import AlertNotifier, BatchAlertNotifier, RetryableError
from podstatus.alerts.rules.action_kinds import SEND_TIMEOUT_SECONDS
from podstatus.base.clock import Clock
from podstatus.base.timeouts import run_with_timeout


class AlertSender:
    """Sends batches through a notifier, be it for one alert at a time or for many."""

    def __init__(
        self, action: Action, notifier: AlertNotifier | BatchAlertNotifier, *, clock: Clock
    ) -> None:
        self._action = action
        self._notifier = (
            notifier if isinstance(notifier, BatchAlertNotifier) else _SingleAlertBatch(notifier)
        )
        self._clock = clock
        self.is_sending = False
        """True while an attempt is in flight."""

    @property
    def max_batch(self) -> int:
        """Maximum number of alerts in one attempt."""
        return self._notifier.max_batch

    @property
    def resend_seconds(self) -> float:
        """How often firing alerts are repeated; infinite: never."""
        return self._notifier.resend_seconds

    async def send(self, alerts: Sequence[Alert]) -> None:
        """Send all alerts in one attempt. Raises ActionError."""
        self.is_sending = True
        try:
            await run_with_timeout(
                SEND_TIMEOUT_SECONDS, self._clock, self._notifier.send_batch(self._action, alerts)
            )
        except TimeoutError as error:
            raise RetryableError(f"not sent within {SEND_TIMEOUT_SECONDS:g} s") from error
        finally:
            self.is_sending = False


class _SingleAlertBatch:
    """A notifier for single alerts as a batch notifier without repetition."""

    max_batch = 1
    resend_seconds = math.inf

    def __init__(self, notifier: AlertNotifier) -> None:
        self._notifier = notifier

    async def send_batch(self, action: Action, alerts: Sequence[Alert]) -> None:
        """Send the alerts one after the other."""
        for alert in alerts:
            await self._notifier.send(action, alert)
