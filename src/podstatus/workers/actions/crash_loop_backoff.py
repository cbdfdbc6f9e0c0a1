"""CrashLoopBackOff: the delay before a container restarts.

The first restart is immediate. Later restarts wait 10 s, 20 s and so on up to 5 minutes after the
previous exit. The delay resets after a container has run for 10 minutes.

Upstream: Backoff, client-go v0.36.4, util/flowcontrol/backoff.go, as doBackOff of
kuberuntime_manager.go v1.36.4 uses it and newCrashLoopBackOff of kubelet.go sets it up.
"""

from collections.abc import Mapping

import msgspec
from msgspec import structs

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time

INITIAL_SECONDS = 10
MAX_SECONDS = 300
_RESET_AFTER_SECONDS = 600
"""Seconds of running. As upstream, independent of `max_seconds`."""
_SECOND = 1_000_000_000


class _BackoffEntry(msgspec.Struct, frozen=True):
    seconds: float
    since: Time
    """Time of the restart that set this delay."""

    def has_expired(self, last_exit: Time) -> bool:
        return last_exit - self.since > _RESET_AFTER_SECONDS * _SECOND


class CrashLoopBackoff(msgspec.Struct, frozen=True, kw_only=True):
    """Delays of all containers. Immutable: `started` and `without_pod` return a new value."""

    max_seconds: float = MAX_SECONDS
    """`crashLoopBackOff.maxContainerRestartPeriod`; below 10 s it is the first delay, too."""
    entries: Mapping[tuple[PodUID, str], _BackoffEntry] = {}

    def __post_init__(self) -> None:
        if not self.max_seconds > 0:
            raise ValueError(
                f"max_seconds is {self.max_seconds!r}; set the maximum restart delay to more than 0"
            )

    def delay(self, uid: PodUID, container: str, last_exit: Time) -> float:
        """Seconds between this exit and the next start."""
        entry = self._active_entry(uid, container, last_exit)
        return 0.0 if entry is None else entry.seconds

    def remaining(self, uid: PodUID, container: str, last_exit: Time, now: Time) -> float:
        """Seconds from `now` until the container may start; 0 if it may start now.

        If the wall clock was set back, `last_exit` can be later than `now`: it then counts as now,
        or is ignored if it is later by more than the delay, so that a start never waits for the
        clock to catch up. Without an exit time the delay counts from the last start.
        """
        entry = self._active_entry(uid, container, last_exit)
        if entry is None:
            return 0.0
        passed = (now - (last_exit or entry.since)) / _SECOND
        return 0.0 if passed < -entry.seconds else max(0.0, entry.seconds - max(0.0, passed))

    def started(
        self, uid: PodUID, container: str, last_exit: Time | None, now: Time
    ) -> "CrashLoopBackoff":
        """Record a start attempt. The delay grows only for restarts (`last_exit` is set)."""
        if last_exit is None:
            return self
        entry = self._active_entry(uid, container, last_exit)
        doubled = INITIAL_SECONDS if entry is None else entry.seconds * 2
        seconds = min(doubled, self.max_seconds)
        return structs.replace(
            self, entries={**self.entries, (uid, container): _BackoffEntry(seconds, now)}
        )

    def without_pod(self, uid: PodUID) -> "CrashLoopBackoff":
        """A copy without the containers of this pod."""
        if not any(pod == uid for pod, _ in self.entries):
            return self
        entries = {key: entry for key, entry in self.entries.items() if key[0] != uid}
        return structs.replace(self, entries=entries)

    def _active_entry(self, uid: PodUID, container: str, last_exit: Time) -> _BackoffEntry | None:
        entry = self.entries.get((uid, container))
        return None if entry is None or entry.has_expired(last_exit) else entry
