"""Report the health of the agent once a second: to its supervisor, and to systemd.

The event loop itself writes the reports, one line of JSON each, to a pipe that the supervisor
opened. So a report proves that the loop turns, whatever happens to ports, certificates and
connections, and its absence that the loop does not (decision 0054).
"""

import os
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from typing import Self

import msgspec

from podstatus.agent.daemon.decide.hang import HangLimits, HangWatch, HealthReport
from podstatus.agent.daemon.sd_notify import SystemdService
from podstatus.base.clock import Clock

HEALTH_FD_VARIABLE = "PODSTATUS_HEALTH_FD"
"""Environment variable of a supervised agent: the inherited pipe for its reports."""
REPORT_SECONDS = 1.0
_MAX_STALLED = 5
_MAX_TEXT = 150
"""A report must be smaller than PIPE_BUF (4,096 bytes): then it is written whole or not at all."""


class HealthReporter:
    """Where the agent reports its health: a pipe to its supervisor, systemd, both or neither."""

    def __init__(self, systemd: SystemdService, supervisor: int | None, clock: Clock) -> None:
        """`supervisor`: descriptor of the pipe to the supervisor; None if there is none."""
        self.systemd = systemd
        self._supervisor = supervisor
        self._clock = clock
        self._limits = HangLimits()
        self._watch = HangWatch.start(clock.monotonic())

    @classmethod
    def take(cls, environment: MutableMapping[str, str], clock: Clock) -> Self:
        """Remove the variables of supervisor and systemd from the environment, and use them."""
        descriptor = environment.pop(HEALTH_FD_VARIABLE, "")
        supervisor = int(descriptor) if descriptor else None
        if supervisor is not None:
            os.set_inheritable(supervisor, False)
            os.set_blocking(supervisor, False)
        return cls(SystemdService.take(environment, clock), supervisor, clock)

    async def run(self, report_health: Callable[[], None]) -> None:
        """Call `report_health`, which calls `report_once`, in time for all readers; forever."""
        ping_seconds = self.systemd.ping_seconds
        interval = min(REPORT_SECONDS, ping_seconds / 2) if ping_seconds else REPORT_SECONDS
        while True:
            report_health()
            await self._clock.wait(interval)

    def report_once(self, report: HealthReport) -> None:
        """Send one report. Never blocks: a supervisor that does not read misses it."""
        if self._supervisor is not None:
            with suppress(OSError):
                os.write(self._supervisor, encode_report(report))
        self.systemd.report(report)
        now = self._clock.monotonic()
        self._watch = self._watch.add_check(now, self._limits).add_report(report, now)
        if self._watch.find_hang(now, self._limits) is None:
            self.systemd.ping()


def encode_report(report: HealthReport) -> bytes:
    """Return one line of JSON; long texts are cut."""
    bounded = msgspec.structs.replace(
        report,
        status=report.status[:_MAX_TEXT],
        stalled=tuple(it[:_MAX_TEXT] for it in report.stalled[:_MAX_STALLED]),
    )
    return msgspec.json.encode(bounded) + b"\n"
