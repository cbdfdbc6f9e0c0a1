"""Log a repeated failure once when it starts, and once when it is over."""

import logging


class FailureLog:
    """The failures of one activity, which is retried until it succeeds."""

    def __init__(
        self, logger: logging.Logger, activity: str, *, expected: type[Exception] = Exception
    ) -> None:
        """Errors that are not of type `expected` are logged with a traceback: they are bugs."""
        self._logger = logger
        self._activity = activity
        self._expected = expected
        self._logged: set[type[Exception]] = set()
        self.error: Exception | None = None
        """The latest failure; None after a success."""

    def failed(self, error: Exception) -> None:
        """Log a failure: a warning for the first of its type, otherwise at debug level."""
        if type(error) in self._logged:
            self._logger.debug("%s failed again: error=%s", self._activity, error)
        else:
            trace = None if isinstance(error, self._expected) else error
            self._logger.warning(
                "%s failed, will retry: error=%s", self._activity, error, exc_info=trace
            )
        self._logged.add(type(error))
        self.error = error

    def recovered(self, details: str = "") -> None:
        """Log at info level that the activity works again, if it had failed."""
        if self.error is not None:
            self._logger.info("%s works again%s", self._activity, details)
        self._logged.clear()
        self.error = None
