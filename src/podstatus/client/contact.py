"""What all clients that speak to a server know of it: when it was last heard, how it answers."""

from podstatus.base.clock import Clock, Elapsed
from podstatus.client.clock_skew import ClockSkew
from podstatus.client.request_counts import RequestCounts


class Contact:
    """Whether the server is there, as far as the newest request or watch tells."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._elapsed = Elapsed(clock)
        self._skew = ClockSkew()
        self._heard = 0.0
        self._is_there = False
        self.requests = RequestCounts()

    @property
    def is_there(self) -> bool:
        """Whether it answered when it was last spoken to; False before it ever did."""
        return self._is_there

    @property
    def age_seconds(self) -> float:
        """Since it was last heard, or since the beginning if it never was."""
        return self._elapsed.seconds() - self._heard

    @property
    def clock_skew_seconds(self) -> float | None:
        """How far our clocks are apart, by the dates of its answers; None if it tells none."""
        return self._skew.seconds

    def now(self) -> int:
        """By our clock, for `dated`."""
        return self._clock.now()

    def dated(self, date: str | None, asked: int) -> None:
        """An answer has this date, to what was asked then."""
        self._skew.answered(date, asked=asked, now=self._clock.now())

    def heard(self) -> None:
        """It has said something, be it a refusal."""
        self._heard = self._elapsed.seconds()
        self._is_there = True

    def failed(self) -> None:
        """It did not answer, or the connection broke."""
        self._is_there = False
