"""Why the node is not Ready, asked of those who know."""

from collections.abc import Callable

from podstatus.base.heartbeat import Heartbeats

Check = Callable[[], str | None]
"""What is wrong, or None. Called with every computation of the status: must not block."""


class NodeHealth:
    """The problems that others have, and the vital services that are not heard of any more."""

    def __init__(self, *checks: Check, heartbeats: Heartbeats | None = None) -> None:
        self._checks = checks
        self._heartbeats = heartbeats

    def problems(self) -> tuple[str, ...]:
        """All of them, in the order of the checks; services that stand still come last.

        Upstream: runtimeErrors, runtime.go v1.36.4.
        """
        told = [problem for check in self._checks if (problem := check())]
        stalled = [] if self._heartbeats is None else self._heartbeats.stalled()
        vital = (found for found in stalled if found.is_vital)
        return *told, *(f"{found.name} is not healthy: {found}" for found in vital)
