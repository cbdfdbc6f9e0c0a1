"""What goes wrong again and again: wait longer each time, and log it once, until it is over."""

import logging
from collections.abc import Callable

from podstatus.base.backoff import Backoff
from podstatus.kube.errors import ApiError

_SECOND = 1e9
_MAX_RETRY_AFTER = 30.0
"""Seconds; a larger Retry-After is not honoured. kube-apiserver sends 1 to 8. Until the list is
repeated the agent sees no pods, so a single bad answer must not cost more than an outage does."""


class FailureBackoff:
    """The failures of one activity, and what is done about them."""

    def __init__(
        self, logger: logging.Logger, activity: str, backoff: Backoff, random: Callable[[], float]
    ) -> None:
        self._logger = logger
        self._activity = activity
        self._backoff = backoff
        self._random = random
        self._since: int | None = None

    @property
    def is_failing(self) -> bool:
        """Whether it failed when it was last tried."""
        return self._since is not None

    def failed(self, error: Exception, now: int) -> float:
        """It failed, at this time; the seconds to wait before the next attempt."""
        self._backoff = self._backoff.failed()
        if self._since is None:
            self._since = now
            # An error that no port names is a mistake in somebody's code: say where.
            trace = None if isinstance(error, ApiError) else error
            self._logger.warning(
                "%s failed, will retry: error=%s", self._activity, error, exc_info=trace
            )
        else:
            self._logger.debug("%s failed again: error=%s", self._activity, error)
        return max(self._backoff.delay(self._random()), _retry_after(error))

    def recovered(self, now: int) -> None:
        """It works, at this time."""
        if self._since is None:
            return
        seconds, failures = max(0, now - self._since) / _SECOND, self._backoff.failures
        self._logger.info(
            "%s works again: seconds=%.1f failures=%d", self._activity, seconds, failures
        )
        self._since, self._backoff = None, self._backoff.reset()


def _retry_after(error: Exception) -> float:
    after = error.retry_after if isinstance(error, ApiError) else None
    return min(after or 0.0, _MAX_RETRY_AFTER)
