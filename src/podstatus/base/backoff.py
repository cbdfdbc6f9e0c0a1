"""How long to wait after failures in a row: longer each time, and never all at the same moment."""

import msgspec
from msgspec import structs


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Waits that grow, as a value: `failed` and `reset` make another one.

    backoff = backoff.failed()
    await clock.wait(backoff.seconds(random()))
    """

    initial_seconds: float = 0.8
    """Seconds after the first failure."""
    max_seconds: float = 30.0
    """Seconds after the last of many."""
    factor: float = 2.0
    jitter: float = 0.5
    """The part of a wait that is left to chance, so that those who failed together do not come
    back together."""
    failures: int = 0
    """In a row, until now."""

    def __post_init__(self) -> None:
        if not 0 <= self.initial_seconds <= self.max_seconds:
            raise ValueError(
                f"the waits are {self.initial_seconds!r} to {self.max_seconds!r} s; two "
                "numbers from 0 on are"
                " expected, the smaller one first"
            )
        if not self.factor >= 1:
            raise ValueError(f"factor is {self.factor!r}; a number from 1 on is expected")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter is {self.jitter!r}; a number from 0 to 1 is expected")

    def failed(self) -> "Backoff":
        """After one failure more."""
        return structs.replace(self, failures=self.failures + 1)

    def reset(self) -> "Backoff":
        """After something went well."""
        return structs.replace(self, failures=0) if self.failures else self

    def delay(self, random: float) -> float:
        """How long to wait now; `random` is a random number from 0 to 1."""
        if not self.failures:
            return 0.0
        try:
            grown = self.initial_seconds * self.factor ** (self.failures - 1)
        except OverflowError:
            grown = self.max_seconds
        return min(self.max_seconds, grown) * (1 - self.jitter * random)
