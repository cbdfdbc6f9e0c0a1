"""Whether an agent hangs, by the health reports of its event loop.

An agent sends a `HealthReport` once a second, through a pipe of its supervisor. It hangs if

    it is silent for 15 s after it has served, or for 300 s before: the event loop stands still,
    the process is stopped (SIGSTOP), or its exit does not end;
    it reports for 60 s without a break that a service has stalled, which `/healthz` shows, too.
    A service reports a stall after 60 s or more without a heartbeat.

Under load, reports are late by the time that the process waits for a CPU: with eight busy processes
on two cores by less than 1 s, so 15 s leave a factor of more than ten (decision 0054).

A stalled service may have a cause that a new agent would meet again. So an agent is replaced for it
at most once per hour; for silence, always.

Time in which the supervisor itself did not run (the machine was suspended, both were stopped)
is no silence of the agent: after such a gap, all periods begin again.
"""

from typing import Self

import msgspec
from msgspec import structs

_SECOND = 1_000_000_000


class HealthReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent reports about itself, once a second."""

    serving: bool = False
    """It has started: all its servers listen."""
    ready: bool = False
    """It serves, and its Node is registered."""
    stopping: bool = False
    """A stop was requested."""
    status: str = ""
    """One line for people, for example `draining node n1`."""
    stalled: tuple[str, ...] = ()
    """The services without a heartbeat for longer than their thresholds."""


class HangLimits(msgspec.Struct, frozen=True, kw_only=True):
    """When an agent hangs; in seconds. See the module's docstring."""

    silent: float = 15.0
    silent_at_start: float = 300.0
    """Opening a large history on a slow disk takes minutes, and may block the event loop."""
    stalled: float = 60.0
    between_stalled: float = 3600.0
    """Between two replacements because of stalled services."""
    abort: float = 5.0
    """From SIGABRT to SIGKILL. The stacks take milliseconds."""
    gap: float = 5.0
    """A supervisor that checks once a second, and has not for this long, did not run."""


class Hang(msgspec.Struct, frozen=True, kw_only=True):
    """Why an agent has to be replaced."""

    reason: str
    by_service: bool = False
    """A service has stalled; the event loop turns."""


class HangWatch(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the health of one agent process; times are monotonic nanoseconds."""

    reported_at: int
    """The last report, or the start of the process, or the end of a gap."""
    checked_at: int
    served: bool = False
    stalled: tuple[str, ...] = ()
    stalled_since: int = 0
    """Meaningless unless `stalled`."""

    @classmethod
    def start(cls, now: int) -> Self:
        """The process was started now."""
        return cls(reported_at=now, checked_at=now)

    def add_report(self, report: HealthReport, now: int) -> "HangWatch":
        """The agent has sent a report."""
        return structs.replace(
            self,
            reported_at=now,
            served=self.served or report.serving,
            stalled=report.stalled,
            stalled_since=self.stalled_since if self.stalled else now,
        )

    def add_check(self, now: int, limits: HangLimits) -> "HangWatch":
        """The supervisor runs, and is about to check the agent."""
        if now - self.checked_at <= limits.gap * _SECOND:
            return structs.replace(self, checked_at=now)
        return structs.replace(self, checked_at=now, reported_at=now, stalled_since=now)

    def find_hang(
        self, now: int, limits: HangLimits, *, replaced_stalled_at: int | None = None
    ) -> Hang | None:
        """Return why the agent hangs; None if it does not.

        `replaced_stalled_at`: when an agent was last replaced because of a stalled service.
        """
        silent = (now - self.reported_at) / _SECOND
        if silent >= (limits.silent if self.served else limits.silent_at_start):
            during = "" if self.served else " during its start"
            return Hang(reason=f"its event loop was silent for {silent:.0f} s{during}")
        if not self.stalled or now - self.stalled_since < limits.stalled * _SECOND:
            return None
        wait = limits.between_stalled * _SECOND
        if replaced_stalled_at is not None and now - replaced_stalled_at < wait:
            return None
        return Hang(reason="; ".join(self.stalled), by_service=True)
