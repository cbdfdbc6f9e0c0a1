"""Tell systemd the state of the service: READY, WATCHDOG, STOPPING, STATUS, EXTEND_TIMEOUT_USEC.

The protocol is one datagram per message to the Unix socket `$NOTIFY_SOCKET`: sd_notify(3),
sd_watchdog_enabled(3). Nothing is sent if systemd did not start this process, and failures are
ignored: systemd is not needed to run pods.

Upstream: READY in cmd/kubelet/app/server.go, WATCHDOG in pkg/kubelet/watchdog, v1.36.4.
"""

import os
import socket
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Self

from podstatus.agent.daemon.decide.hang import HangLimits, HealthReport
from podstatus.base.clock import Clock
from podstatus.base.control_chars import escape_control_chars

_SOCKET_VARIABLE = "NOTIFY_SOCKET"
_WATCHDOG_VARIABLE = "WATCHDOG_USEC"
_WATCHDOG_PID_VARIABLE = "WATCHDOG_PID"
_MAX_STATUS = 500
_START_EXTENSION = HangLimits().silent_at_start
"""A start may take as long as a supervisor allows."""
_STOP_EXTENSION = 30.0
"""Much more than the interval of reports; the agent has a deadline of its own for its stop."""


class SystemdService:
    """This process as a service of systemd, or not."""

    def __init__(self, address: str, *, watchdog_seconds: float, clock: Clock) -> None:
        """`address` is empty without systemd; `watchdog_seconds` is 0 without a watchdog."""
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._watchdog_seconds = watchdog_seconds
        self._clock = clock
        self._last_ping: int | None = None
        self._sent: set[str] = set()
        """READY and STOPPING, each sent once."""
        self._status = ""

    @classmethod
    def take(cls, environment: MutableMapping[str, str], clock: Clock) -> Self:
        """Remove the variables of systemd, so that no child process has them, and use them."""
        address = environment.pop(_SOCKET_VARIABLE, "")
        seconds = _watchdog_seconds(
            environment.pop(_WATCHDOG_VARIABLE, ""), environment.pop(_WATCHDOG_PID_VARIABLE, "")
        )
        return cls(
            address if address[:1] in ("/", "@") else "",
            watchdog_seconds=seconds if address else 0.0,
            clock=clock,
        )

    @property
    def ping_seconds(self) -> float | None:
        """The interval in which systemd expects `ping`: half its limit; None without a watchdog."""
        return self._watchdog_seconds / 2 if self._watchdog_seconds else None

    def report(self, report: HealthReport) -> None:
        """Send what has changed, and ask for more time while the agent starts or stops."""
        lines = []
        if report.ready:
            lines += self._once("READY=1")
        if report.stopping:
            lines += self._once("STOPPING=1")
        if report.stopping or "READY=1" not in self._sent:
            seconds = _STOP_EXTENSION if report.stopping else _START_EXTENSION
            lines.append(f"EXTEND_TIMEOUT_USEC={seconds * 1e6:.0f}")
        if report.status != self._status:
            self._status = report.status
            lines.append(f"STATUS={_one_line(report.status)}")
        if lines:
            self._send("\n".join(lines))

    def ping(self) -> None:
        """Tell the watchdog, if it is time, that the agent is healthy."""
        now, seconds = self._clock.monotonic(), self.ping_seconds
        if seconds is None:
            return
        if self._last_ping is None or now - self._last_ping >= seconds * 1e9:
            self._last_ping = now
            self._send("WATCHDOG=1")

    def _once(self, line: str) -> list[str]:
        if line in self._sent:
            return []
        self._sent.add(line)
        return [line]

    def _send(self, message: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to_systemd:
            to_systemd.setblocking(False)
            to_systemd.sendto(message.encode(), self._address)


def _watchdog_seconds(microseconds: str, pid: str) -> float:
    """The limit of the watchdog; 0 if there is none, or if it is for another process."""
    if pid and pid != str(os.getpid()):
        return 0.0
    return int(microseconds) / 1e6 if microseconds.isascii() and microseconds.isdigit() else 0.0


def _one_line(text: str) -> str:
    return escape_control_chars(text.replace("\n", "\\n"))[:_MAX_STATUS]
