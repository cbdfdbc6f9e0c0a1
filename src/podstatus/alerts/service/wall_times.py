"""The times of alerts as people and the alert file have them.

The engine measures with the monotonic clock. Its times become wall-clock times when an alert leaves
it, and stored ones become monotonic once, when they are loaded.
"""

from msgspec import structs

from podstatus.alerts.model import Alert
from podstatus.base.clock import Clock

_STEP_NANOS = 1_000_000_000
"""A larger difference means that the wall clock was set; below it, shown times stay the same."""


class WallTimes:
    """Converts the times of alerts between the monotonic clock and the wall clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = clock.now() - clock.monotonic()

    def update(self) -> bool:
        """Use the current wall clock; return whether it was set since the last call.

        Waiting alerts are then to be stored again, or a restart would change how long they wait.
        """
        offset = self._clock.now() - self._clock.monotonic()
        if abs(offset - self._offset) < _STEP_NANOS:
            return False
        self._offset = offset
        return True

    def to_wall(self, alert: Alert) -> Alert:
        return _shift_times(alert, self._offset)

    def to_monotonic(self, alert: Alert) -> Alert:
        """Return a stored alert with monotonic times, none of them in the future."""
        now = self._clock.monotonic()
        latest = max(alert.since, alert.fired, alert.ceased) - self._offset
        return _shift_times(alert, -self._offset - max(0, latest - now))


def _shift_times(alert: Alert, nanos: int) -> Alert:
    since, fired, ceased, resolved = (
        at and at + nanos for at in (alert.since, alert.fired, alert.ceased, alert.resolved)
    )
    return structs.replace(alert, since=since, fired=fired, ceased=ceased, resolved=resolved)
