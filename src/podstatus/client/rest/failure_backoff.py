"""Repeated failures of an activity: back off, and log their start and the recovery."""

import logging
from collections.abc import Callable

from podstatus.base.backoff import Backoff
from podstatus.base.failure_log import FailureLog
from podstatus.kube.api_errors import ApiError

_SECOND = 1e9
_MAX_RETRY_AFTER = 30.0
"""Seconds; caps Retry-After. kube-apiserver sends 1 to 8. Until the list is repeated the agent sees
no pods, so a single bad response must not cost more than an outage."""


class FailureBackoff:
    """The back-off and the log of one activity's failures. Times are monotonic nanoseconds."""

    def __init__(
        self, logger: logging.Logger, activity: str, backoff: Backoff, random: Callable[[], float]
    ) -> None:
        self._log = FailureLog(logger, activity, expected=ApiError)
        self._backoff = backoff
        self._random = random
        self._since = 0

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt failed."""
        return self._log.error is not None

    def failed(self, error: Exception, now: int) -> float:
        """Record a failure; return the seconds to wait before the next attempt."""
        if not self.is_failing:
            self._since = now
        self._log.failed(error)
        self._backoff = self._backoff.failed()
        return max(self._backoff.delay(self._random()), _retry_after(error))

    def recovered(self, now: int) -> None:
        """Record a success, and log the recovery if the last attempt failed."""
        seconds, failures = (now - self._since) / _SECOND, self._backoff.failures
        self._log.recovered(f": seconds={seconds:.1f} failures={failures}")
        self._backoff = self._backoff.reset()


def _retry_after(error: Exception) -> float:
    after = error.retry_after if isinstance(error, ApiError) else None
    return min(after or 0.0, _MAX_RETRY_AFTER)
