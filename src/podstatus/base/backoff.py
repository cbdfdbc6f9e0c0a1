"""Exponential back-off with jitter, as a value."""

import msgspec
from msgspec import structs


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """An exponential back-off; immutable, `failed` and `reset` return a new one.

    backoff = backoff.failed()
    await clock.wait(backoff.delay(random()))
    """

    initial_seconds: float = 0.8
    """Delay after the first failure."""
    max_seconds: float = 30.0
    """Maximum delay."""
    factor: float = 2.0
    jitter: float = 0.5
    """Fraction of the delay that is random, so that clients that failed together do not retry
    together."""
    failures: int = 0
    """Number of consecutive failures."""

    def __post_init__(self) -> None:
        if not 0 <= self.initial_seconds <= self.max_seconds:
            raise ValueError(
                f"initial_seconds={self.initial_seconds!r}, max_seconds={self.max_seconds!r}: "
                "expected 0 <= initial_seconds <= max_seconds"
            )
        if not self.factor >= 1:
            raise ValueError(f"factor={self.factor!r}: expected a number of at least 1")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter={self.jitter!r}: expected a number from 0 to 1")

    def failed(self) -> "Backoff":
        """Return the back-off after one more failure."""
        return structs.replace(self, failures=self.failures + 1)

    def failed_after(self, uptime_seconds: float, *, reset_after: float) -> "Backoff":
        """Return the back-off of a process that ended; a long uptime counts as a success."""
        return (self.reset() if uptime_seconds > reset_after else self).failed()

    def reset(self) -> "Backoff":
        """Return the back-off after a success."""
        return structs.replace(self, failures=0) if self.failures else self

    def delay(self, random: float) -> float:
        """Return the delay in seconds; `random` is a random number from 0 to 1."""
        if not self.failures:
            return 0.0
        try:
            delay = self.initial_seconds * self.factor ** (self.failures - 1)
        except OverflowError:
            delay = self.max_seconds
        return min(self.max_seconds, delay) * (1 - self.jitter * random)
