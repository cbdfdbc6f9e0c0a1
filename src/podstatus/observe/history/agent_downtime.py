"""Note since when nobody had seen a pod, when an agent begins to look after it again.

A file beside the history shows until when an agent was there: its time is set every second. Without
that a pod whose agent was away for an hour would seem to have been looked at all the time. It is a
file of its own since others who read a history may set the times of its files.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.observe.history.status_writer import Historian
from podstatus.observe.transitions.status_transitions import AWAY, Transition

_PERIOD_SECONDS = 1.0
_SECOND = 1_000_000_000


def last_there(history: Path) -> int | None:
    """Until when an agent was there; None if there was none. Nanoseconds since the Unix epoch."""
    # An agent of an earlier version set the time of the history itself.
    for path in (_beside(history), history):
        with suppress(OSError):
            return path.stat().st_mtime_ns
    return None


def _beside(history: Path) -> Path:
    return history.with_name(f"{history.name}-there")


def _show_there(path: Path, now: int) -> None:
    path.touch(mode=0o600)
    os.utime(path, ns=(now, now))


class Absence:
    """Told of statuses before the historian is, it has the time before the first of each noted."""

    def __init__(
        self,
        historian: Historian,
        history: Path,
        known: frozenset[PodUID],
        *,
        since: int | None,
        clock: Clock,
    ) -> None:
        """`known` are the pods that were seen before; `since` is what `last_there` said then.

        The agent is there from now on, whenever the pods are seen.
        """
        self._historian = historian
        self._path = _beside(history)
        self._clock = clock
        self._began = clock.now()
        self._seconds = 0.0 if since is None else (self._began - since) / _SECOND
        # A clock that was set back says nothing.
        self._unseen = set(known) if self._seconds > 0 else set()

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:  # noqa: ARG002
        """The pod is seen, perhaps for the first time."""
        if pod.uid not in self._unseen:
            return
        self._unseen.discard(pod.uid)
        away = Transition(kind=AWAY, after=f"{self._seconds:.3f} s")
        self._historian.note(pod, away, at=self._began)

    def on_pod_removed(self, pod: Pod) -> None:
        """Nothing was missed of a pod that is over."""

    async def run(self) -> None:
        """Show that an agent is there, until cancelled."""
        while True:
            now = self._clock.now()
            with suppress(OSError):  # the next second may do
                # In a thread: a disk that hangs must not stop the others.
                await asyncio.to_thread(_show_there, self._path, now)
            await self._clock.wait(_PERIOD_SECONDS)
