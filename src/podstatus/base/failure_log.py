"""What fails again and again: logged when it begins, not with every try, and when it is over."""

import logging


class FailureLog:
    """An activity that may fail for a while."""

    def __init__(
        self, logger: logging.Logger, activity: str, *, expected: type[Exception] = Exception
    ) -> None:
        """Of errors that are not expected the place is logged too: a mistake in somebody's code."""
        self._logger = logger
        self._activity = activity
        self._expected = expected
        self._logged: set[type[Exception]] = set()
        self.error: Exception | None = None
        """The newest failure, until it is over."""

    def failed(self, error: Exception) -> None:
        """It failed. Another kind of failure is worth a line of its own."""
        if type(error) in self._logged:
            self._logger.debug("%s failed again: error=%s", self._activity, error)
        else:
            trace = None if isinstance(error, self._expected) else error
            self._logger.warning(
                "%s failed, will retry: error=%s", self._activity, error, exc_info=trace
            )
        self._logged.add(type(error))
        self.error = error

    def recovered(self) -> None:
        """It works."""
        if self.error is not None:
            self._logger.info("%s works again", self._activity)
        self._logged.clear()
        self.error = None
