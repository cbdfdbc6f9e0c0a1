"""CrashLoopBackOff: the delay before a container restarts.

The first restart is immediate. Later restarts wait 10 s, 20 s and so on up to 5 minutes after the
previous exit. The delay resets after a container has run for 10 minutes. Unlike upstream, all of
this is measured with the monotonic clock, so a wall-clock jump neither ends nor extends a delay.

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
    """Times are monotonic, in ns, except for `last_exit`."""

    seconds: float
    started_at: int
    """Time of the restart that set this delay."""
    last_exit: Time
    """The exit that `exited_at` belongs to, as the runtime recorded it; only compared."""
    exited_at: int
    """Before `started_at` until the attempt that was started then has exited."""

    @property
    def has_expired(self) -> bool:
        return self.exited_at - self.started_at > _RESET_AFTER_SECONDS * _SECOND


class CrashLoopBackoff(msgspec.Struct, frozen=True, kw_only=True):
    """Delays of all containers. Immutable: its transitions return a new value."""

    max_seconds: float = MAX_SECONDS
    """`crashLoopBackOff.maxContainerRestartPeriod`; below 10 s it is the first delay, too."""
    entries: Mapping[tuple[PodUID, str], _BackoffEntry] = {}

    def __post_init__(self) -> None:
        if not self.max_seconds > 0:
            raise ValueError(
                f"max_seconds is {self.max_seconds!r}; set the maximum restart delay to more than 0"
            )

    def delay(self, uid: PodUID, container: str) -> float:
        """Seconds between the last exit and the next start."""
        entry = self._active_entry(uid, container)
        return 0.0 if entry is None else entry.seconds

    def remaining(self, uid: PodUID, container: str, monotonic: int) -> float:
        """Seconds from `monotonic` until the container may start; 0 if it may start now."""
        entry = self._active_entry(uid, container)
        if entry is None:
            return 0.0
        return max(0.0, entry.seconds - (monotonic - entry.exited_at) / _SECOND)

    def exited(
        self, uid: PodUID, exits: Mapping[str, Time], now: Time, monotonic: int
    ) -> "CrashLoopBackoff":
        """Record the last exit of each container; an exit that is recorded already is ignored.

        `exits` are wall-clock times, and the wall clock may have been set since: an exit before
        the start of its attempt, or in the future, counts as an exit at `monotonic`.
        """
        changed = {}
        for container, last_exit in exits.items():
            entry = self.entries.get((uid, container))
            if entry is not None and entry.last_exit != last_exit:
                at = _monotonic_exit(last_exit, now, monotonic, earliest=entry.started_at)
                changed[uid, container] = structs.replace(entry, last_exit=last_exit, exited_at=at)
        return structs.replace(self, entries={**self.entries, **changed}) if changed else self

    def started(
        self, uid: PodUID, container: str, last_exit: Time | None, now: Time, monotonic: int
    ) -> "CrashLoopBackoff":
        """Record a start attempt. The delay grows only for restarts (`last_exit` is set)."""
        if last_exit is None:
            return self
        old = self.exited(uid, {container: last_exit}, now, monotonic)
        entry = old.entries.get((uid, container))
        seconds = INITIAL_SECONDS if entry is None or entry.has_expired else entry.seconds * 2
        exited_at = (
            _monotonic_exit(last_exit, now, monotonic, earliest=None)
            if entry is None
            else entry.exited_at
        )
        entry = _BackoffEntry(min(seconds, self.max_seconds), monotonic, last_exit, exited_at)
        return structs.replace(self, entries={**old.entries, (uid, container): entry})

    def without_pod(self, uid: PodUID) -> "CrashLoopBackoff":
        """A copy without the containers of this pod."""
        if not any(pod == uid for pod, _ in self.entries):
            return self
        entries = {key: entry for key, entry in self.entries.items() if key[0] != uid}
        return structs.replace(self, entries=entries)

    def _active_entry(self, uid: PodUID, container: str) -> _BackoffEntry | None:
        entry = self.entries.get((uid, container))
        return None if entry is None or entry.has_expired else entry


def _monotonic_exit(last_exit: Time, now: Time, monotonic: int, *, earliest: int | None) -> int:
    """The monotonic time of an exit; `monotonic` if the recorded time is unset or impossible."""
    exited_at = monotonic - (now - last_exit)
    if not last_exit or (earliest is not None and exited_at < earliest):
        return monotonic
    return min(exited_at, monotonic)
