"""Heartbeats that expire within a test."""

from collections.abc import Callable

from podstatus.base.service_heartbeats import Heartbeats
from podstatus.base.system_clock import SystemClock

AT_MOST = 5.0
"""More than a busy machine lets a service wait that could go on."""


class ImpatientHeartbeats(Heartbeats):
    """Those of one service have to come soon, the others have all the time."""

    def __init__(self, impatient_of: str, seconds: float = AT_MOST) -> None:
        super().__init__(SystemClock())
        self._impatient_of = impatient_of
        self._seconds = seconds

    def register(
        self, name: str, *, max_silent_seconds: float, is_vital: bool = True
    ) -> Callable[[], None]:
        max_silent_seconds = self._seconds if name == self._impatient_of else max_silent_seconds
        return super().register(name, max_silent_seconds=max_silent_seconds, is_vital=is_vital)
