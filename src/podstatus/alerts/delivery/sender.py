"""Tries to tell one receiver of some alerts: each is bounded in time, and one is made at a time."""

import math
from collections.abc import Sequence

from podstatus.alerts.model import Action, Alert
from podstatus.alerts.ports import BatchDeed, Deed, TransientDeedError
from podstatus.alerts.rules.action_kinds import TRY_SECONDS
from podstatus.base.aio import run_with_timeout
from podstatus.base.clock import Clock


class Attempts:
    """What a receiver is told with, be it one alert at a time or many."""

    def __init__(self, action: Action, deed: Deed | BatchDeed, *, clock: Clock) -> None:
        self._action = action
        self._deed = deed if isinstance(deed, BatchDeed) else _OneByOne(deed)
        self._clock = clock
        self.is_trying = False
        """Whether the receiver may be hearing something now."""

    @property
    def most(self) -> int:
        """Alerts at once."""
        return self._deed.most

    @property
    def again_seconds(self) -> float:
        """So often it wants to hear of what fires; infinite: once is enough."""
        return self._deed.again_seconds

    async def tell(self, alerts: Sequence[Alert]) -> None:
        """Tell it of all of them, once. Raises DeedError."""
        self.is_trying = True
        try:
            await run_with_timeout(
                TRY_SECONDS, self._clock, self._deed.do_all(self._action, alerts)
            )
        except TimeoutError as error:
            raise TransientDeedError(f"nothing came of it within {TRY_SECONDS:g} s") from error
        finally:
            self.is_trying = False


class _OneByOne:
    """A deed that takes one alert at a time, and hears of it once."""

    most = 1
    again_seconds = math.inf

    def __init__(self, deed: Deed) -> None:
        self._deed = deed

    async def do_all(self, action: Action, alerts: Sequence[Alert]) -> None:
        """Do it."""
        for alert in alerts:
            await self._deed.do(action, alert)
