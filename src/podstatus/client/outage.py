"""What goes wrong again and again: wait longer each time, and log it once, until it is over."""

import logging
from collections.abc import Callable

from podstatus.base.backoff import Backoff
from podstatus.kube.errors import ApiError, BusyError

_SECOND = 1e9


class Outage:
    """The failures of one activity, and what is done about them."""

    def __init__(
        self, logger: logging.Logger, what: str, backoff: Backoff, random: Callable[[], float]
    ) -> None:
        self._logger = logger
        self._what = what
        self._backoff = backoff
        self._random = random
        self._since: int | None = None

    def failed(self, error: Exception, now: int) -> float:
        """It failed, at this time; the seconds to wait before the next attempt."""
        self._backoff = self._backoff.failed()
        if self._since is None:
            self._since = now
            # An error that no port names is a mistake in somebody's code: say where.
            trace = None if isinstance(error, ApiError) else error
            self._logger.warning(
                "%s failed, will retry: error=%s", self._what, error, exc_info=trace
            )
        else:
            self._logger.debug("%s failed again: error=%s", self._what, error)
        return max(self._backoff.seconds(self._random()), _asked_to_wait(error))

    def over(self, now: int) -> None:
        """It works, at this time."""
        if self._since is None:
            return
        seconds, failures = max(0, now - self._since) / _SECOND, self._backoff.failures
        self._logger.info("%s works again: seconds=%.1f failures=%d", self._what, seconds, failures)
        self._since, self._backoff = None, self._backoff.reset()


def _asked_to_wait(error: Exception) -> float:
    return (error.retry_after or 0.0) if isinstance(error, BusyError) else 0.0
