"""How far our clock and a server's are apart, from the dates of its answers.

A date has whole seconds, and between a question and its answer time passes: each answer leaves
room for a difference, and what is told is the smallest that one of the newest answers allows. So
a slow answer never looks like a wrong clock.
"""

from collections import deque
from email.utils import parsedate_to_datetime

_SECOND = 1_000_000_000
_NEWEST = 16
"""Answers that count. A busy agent gets as many within a minute."""
_MINUTE = 60 * _SECOND
"""How long they do, for one that has little to ask: a clock may be set meanwhile."""


class ClockSkew:
    """The difference, as far as it is known. For one event loop."""

    def __init__(self) -> None:
        self._bounds: deque[tuple[int, float, float]] = deque(maxlen=_NEWEST)
        """When an answer came, and the differences it leaves room for."""
        self._date = ""

    @property
    def seconds(self) -> float | None:
        """How far they are apart, whichever is ahead; None if no answer told its date."""
        return min((_least(*bounds) for _, *bounds in self._bounds), default=None)

    def answered(self, date: str | None, *, asked: int, now: int) -> None:
        """An answer to what was asked at that time came now, both by our clock."""
        # Many answers have the same date; one of them tells as much as all.
        if not date or date == self._date or now < asked:
            return
        self._date = date
        try:
            told = parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError, OverflowError):
            return
        self._forget_old(now)
        # It was some time within a second, and it is ours some time between asking and now.
        self._bounds.append((now, asked / _SECOND - told - 1, now / _SECOND - told))

    def _forget_old(self, now: int) -> None:
        bounds = self._bounds
        if bounds and now < bounds[-1][0]:
            bounds.clear()  # our clock was set back
        while bounds and now - bounds[0][0] >= _MINUTE:
            bounds.popleft()


def _least(lowest: float, highest: float) -> float:
    """The smallest difference between these two, without its sign."""
    return max(0.0, lowest, -highest)
