"""Result of a single check.

CheckError     the check could not be made; the state of the container is unknown
"""

import msgspec

MAX_OUTPUT_BYTES = 10 * 1024
"""Bytes of a response or command output that are kept. Upstream's value."""


class CheckError(Exception):
    """A check could not be made; the message has the cause."""

    def __init__(self, message: str, *, state: str = "unknown") -> None:
        super().__init__(message)
        self.state = state
        """The state named in the event. Upstream reports `failure` for an incomplete response,
        though it has no further effect."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a completed check."""

    success: bool
    output: str = ""
    """Output for the event."""
    warning: bool = False
    """Success, but with a ProbeWarning event."""
