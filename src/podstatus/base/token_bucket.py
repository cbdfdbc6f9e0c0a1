"""A token bucket rate limiter, as a value."""

import msgspec
from msgspec import structs

_SECOND = 1_000_000_000


class TokenBucket(msgspec.Struct, frozen=True, kw_only=True):
    """A token bucket: `burst` at once, then one every `interval_ns` nanoseconds; immutable.

    bucket, allowed = bucket.try_acquire(now)

    Times are integers, so there is no rounding error. `now` must be monotonic.
    """

    burst: int
    interval_ns: int
    debt_ns: int = 0
    """Nanoseconds until the bucket is full."""
    at: int = 0
    """Time of the last call, to which `debt_ns` refers."""

    def __post_init__(self) -> None:
        if self.burst < 1 or self.interval_ns < 1:
            raise ValueError(
                f"burst={self.burst}, interval_ns={self.interval_ns} allows nothing; "
                "both must be at least 1"
            )

    @classmethod
    def per_second(cls, per_second: float, burst: int) -> "TokenBucket":
        if per_second <= 0:
            raise ValueError(f"{per_second} per second allows nothing; use a rate above zero")
        return cls(burst=burst, interval_ns=max(1, round(_SECOND / per_second)))

    def try_acquire(self, now: int) -> tuple["TokenBucket", bool]:
        """Return the new bucket, and whether a token was taken; otherwise none is consumed."""
        debt = self._debt_at(now)
        allowed = debt + self.interval_ns <= self.burst * self.interval_ns
        return structs.replace(self, debt_ns=debt + self.interval_ns * allowed, at=now), allowed

    def reserve(self, now: int) -> tuple["TokenBucket", float]:
        """Take a token, possibly a future one; return the seconds until it is available."""
        debt = self._debt_at(now) + self.interval_ns
        wait_ns = max(0, debt - self.burst * self.interval_ns)
        return structs.replace(self, debt_ns=debt, at=now), wait_ns / _SECOND

    def release(self) -> "TokenBucket":
        """Return the bucket with an unused reserved token put back."""
        return structs.replace(self, debt_ns=max(0, self.debt_ns - self.interval_ns))

    def _debt_at(self, now: int) -> int:
        return max(0, self.debt_ns - max(0, now - self.at))
