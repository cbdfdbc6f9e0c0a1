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
from podstatus.observe.history.status_writer import StatusHistoryWriter
from podstatus.observe.transitions.status_transitions import AGENT_DOWNTIME, Transition

_PERIOD_SECONDS = 1.0
_SECOND = 1_000_000_000


def last_alive(history: Path) -> int | None:
    """Until when an agent was there; None if there was none. Nanoseconds since the Unix epoch."""
    # An agent of an earlier version set the time of the history itself.
    for path in (_heartbeat_path(history), history):
        with suppress(OSError):
            return path.stat().st_mtime_ns
    return None


def _heartbeat_path(history: Path) -> Path:
    return history.with_name(f"{history.name}-there")


def _touch_heartbeat(path: Path, now: int) -> None:
    path.touch(mode=0o600)
    os.utime(path, ns=(now, now))


class AgentDowntime:
    """Told of statuses before the historian is, it has the time before the first of each noted."""

    def __init__(
        self,
        writer: StatusHistoryWriter,
        history: Path,
        known_pods: frozenset[PodUID],
        *,
        last_alive_at: int | None,
        clock: Clock,
    ) -> None:
        """`known_pods` are the pods that were seen before; `last_alive_at` is what `last_alive`
        said then.

        The agent is there from now on, whenever the pods are seen.
        """
        self._writer = writer
        self._path = _heartbeat_path(history)
        self._clock = clock
        self._started_at = clock.now()
        self._downtime_seconds = (
            0.0 if last_alive_at is None else (self._started_at - last_alive_at) / _SECOND
        )
        # A clock that was set back says nothing.
        self._unreported_pods = set(known_pods) if self._downtime_seconds > 0 else set()

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:  # noqa: ARG002
        """The pod is seen, perhaps for the first time."""
        if pod.uid not in self._unreported_pods:
            return
        self._unreported_pods.discard(pod.uid)
        away = Transition(kind=AGENT_DOWNTIME, after=f"{self._downtime_seconds:.3f} s")
        self._writer.add_entry(pod, away, at=self._started_at)

    def on_pod_removed(self, pod: Pod) -> None:
        """Nothing was missed of a pod that is over."""

    async def run(self) -> None:
        """Show that an agent is there, until cancelled."""
        while True:
            now = self._clock.now()
            with suppress(OSError):  # the next second may do
                # In a thread: a disk that hangs must not stop the others.
                await asyncio.to_thread(_touch_heartbeat, self._path, now)
            await self._clock.wait(_PERIOD_SECONDS)
