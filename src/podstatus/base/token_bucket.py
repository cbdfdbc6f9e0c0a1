"""How often something may be done, as a value: so many at once, then one in a while."""

import msgspec
from msgspec import structs

_SECOND = 1_000_000_000


class TokenBucket(msgspec.Struct, frozen=True, kw_only=True):
    """What may still be done: `burst` at once, and one more every so many nanoseconds.

    allowance, allowed = allowance.spend(now)

    Whole nanoseconds, so that nothing is lost to rounding however often it is asked. A clock that
    is set back gives nothing; it takes nothing away from who keeps what `spend` returns, also when
    it is not allowed. Who does not keep that, or must get nothing from a clock that is set ahead,
    takes `now` from one that nobody sets.
    """

    burst: int
    interval_ns: int
    debt_ns: int = 0
    """Nanoseconds until it is whole again."""
    at: int = 0
    """When that was so."""

    def __post_init__(self) -> None:
        if self.burst < 1 or self.interval_ns < 1:
            raise ValueError(
                f"burst={self.burst}, every={self.interval_ns} allows nothing; give more than zero"
            )

    @classmethod
    def per_second(cls, per_second: float, burst: int) -> "TokenBucket":
        """So many a second."""
        if per_second <= 0:
            raise ValueError(f"{per_second} a second allows nothing; give more than zero")
        return cls(burst=burst, interval_ns=max(1, round(_SECOND / per_second)))

    def try_acquire(self, now: int) -> tuple["TokenBucket", bool]:
        """After one more, and whether it is allowed; nothing is spent on what is not."""
        owed = self._debt_at(now)
        allowed = owed + self.interval_ns <= self.burst * self.interval_ns
        return structs.replace(self, debt_ns=owed + self.interval_ns * allowed, at=now), allowed

    def wait_seconds(self, now: int) -> float:
        """How long until the next is allowed."""
        return max(0, self._debt_at(now) - (self.burst - 1) * self.interval_ns) / _SECOND

    def _debt_at(self, now: int) -> int:
        return max(0, self.debt_ns - max(0, now - self.at))
