"""What one check of a container came to.

CannotCheckError     it could not be made; nothing is known about the container
"""

import msgspec

MAX_OUTPUT_BYTES = 10 * 1024
"""Bytes of an answer that are kept. Upstream's."""


class CheckError(Exception):
    """A check could not be made; the message says why."""

    def __init__(self, message: str, *, state: str = "unknown") -> None:
        super().__init__(message)
        self.state = state
        """What it resulted in, for the event: upstream says `failure` of an answer that broke
        off, though nothing follows from it either."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check that was made."""

    success: bool
    output: str = ""
    """What was seen, for people."""
    warning: bool = False
    """It counts as a success, but somebody should have a look."""
