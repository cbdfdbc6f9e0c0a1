"""When a container that keeps ending may be started again.

The first restart comes at once. Each further one waits longer, counted from the exit before it:
10 s, 20 s, and so on up to 5 minutes. A container that ran for 10 minutes has recovered.

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
"""Seconds of running. Upstream's number, whatever the longest wait is."""
_SECOND = 1_000_000_000


class _BackoffEntry(msgspec.Struct, frozen=True):
    seconds: float
    since: Time
    """When the restart was made that counts this wait."""

    def has_expired(self, last_exit: Time) -> bool:
        return last_exit - self.since > _RESET_AFTER_SECONDS * _SECOND


class CrashLoopBackoff(msgspec.Struct, frozen=True, kw_only=True):
    """The waits of all containers, as a value: `started` and `forget` make another one."""

    max_seconds: float = MAX_SECONDS
    """`crashLoopBackOff.maxContainerRestartPeriod`; below 10 s it is the first wait too."""
    entries: Mapping[tuple[PodUID, str], _BackoffEntry] = {}

    def __post_init__(self) -> None:
        if not self.max_seconds > 0:
            raise ValueError(
                f"max_seconds is {self.max_seconds!r}; the longest wait between two restarts,"
                " more than 0, is expected"
            )

    def delay(self, uid: PodUID, container: str, last_exit: Time) -> float:
        """How many seconds have to pass after this exit."""
        wait = self._active_entry(uid, container, last_exit)
        return 0.0 if wait is None else wait.seconds

    def remaining(self, uid: PodUID, container: str, last_exit: Time, now: Time) -> float:
        """How long its start has to wait from now on; 0 if it may be started.

        An exit that lies ahead, by a clock that was set back, counts as one of just now; one that
        lies ahead by more than the wait does not count: until the clock has caught up would be too
        long. If it is not known when it ended, the wait is counted from its start.
        """
        wait = self._active_entry(uid, container, last_exit)
        if wait is None:
            return 0.0
        passed = (now - (last_exit or wait.since)) / _SECOND
        return 0.0 if passed < -wait.seconds else max(0.0, wait.seconds - max(0.0, passed))

    def started(
        self, uid: PodUID, container: str, last_exit: Time | None, now: Time
    ) -> "CrashLoopBackoff":
        """A start was tried now. Without an exit before it, it is no restart."""
        if last_exit is None:
            return self
        wait = self._active_entry(uid, container, last_exit)
        grown = INITIAL_SECONDS if wait is None else wait.seconds * 2
        seconds = min(grown, self.max_seconds)
        return structs.replace(
            self, entries={**self.entries, (uid, container): _BackoffEntry(seconds, now)}
        )

    def without_pod(self, uid: PodUID) -> "CrashLoopBackoff":
        """Without this pod."""
        if not any(pod == uid for pod, _ in self.entries):
            return self
        waits = {key: wait for key, wait in self.entries.items() if key[0] != uid}
        return structs.replace(self, entries=waits)

    def _active_entry(self, uid: PodUID, container: str, last_exit: Time) -> _BackoffEntry | None:
        wait = self.entries.get((uid, container))
        return None if wait is None or wait.has_expired(last_exit) else wait
