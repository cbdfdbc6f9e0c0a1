"""Repeated failures of an activity: back off, and log only the first failure and the recovery."""

import logging
from collections.abc import Callable

from podstatus.base.backoff import Backoff
from podstatus.kube.errors import ApiError

_SECOND = 1e9
_MAX_RETRY_AFTER = 30.0
"""Seconds; caps Retry-After. kube-apiserver sends 1 to 8. Until the list is repeated the agent sees
no pods, so a single bad response must not cost more than an outage."""


class FailureBackoff:
    """The back-off and the log of one activity's failures. Times are monotonic nanoseconds."""

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
        """Whether the last attempt failed."""
        return self._since is not None

    def failed(self, error: Exception, now: int) -> float:
        """Record a failure; return the seconds to wait before the next attempt."""
        self._backoff = self._backoff.failed()
        if self._since is None:
            self._since = now
            # Any other error than ApiError is a bug: log its traceback.
            trace = None if isinstance(error, ApiError) else error
            self._logger.warning(
                "%s failed, will retry: error=%s", self._activity, error, exc_info=trace
            )
        else:
            self._logger.debug("%s failed again: error=%s", self._activity, error)
        return max(self._backoff.delay(self._random()), _retry_after(error))

    def recovered(self, now: int) -> None:
        """Record a success, and log the recovery if the last attempt failed."""
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
