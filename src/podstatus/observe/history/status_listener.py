"""Listeners of the status manager that write the history of a node.

    writer = StatusHistoryWriter(History.open(path), clock=clock)
    status_manager.add_notifier(writer)
    tasks.create_task(writer.run())

`AgentDowntime` records for how long no agent ran, when an agent sees a pod again after a restart.
A heartbeat file beside the history shows until when an agent ran: its mtime is set every second.
Without it, a pod whose agent was down for an hour would seem to have been watched all the time. It
is a separate file because other readers of a history may change the times of its files.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from podstatus.base.clock import Clock
from podstatus.kube.objects.meta import NamedPod
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.observe.history.writer import HistoryWriter
from podstatus.observe.transitions.compare_statuses import AGENT_DOWNTIME, Transition
from podstatus.observe.transitions.tracker import STATUS_SOURCE

_PERIOD_SECONDS = 1.0
_SECOND = 1_000_000_000


class StatusHistoryWriter(HistoryWriter[Pod]):
    """Records every status of the manager. Thread-safe."""

    source = STATUS_SOURCE

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:  # noqa: ARG002
        """Record the new status, which `pod` already has."""
        self.pod_changed(pod)

    def on_pod_removed(self, pod: Pod) -> None:
        self.pod_finished(pod)


def last_alive(history: Path) -> int | None:
    """Return until when an agent ran, in nanoseconds since the Unix epoch; None if none did."""
    # Agents of an earlier version set the mtime of the history itself.
    for path in (_heartbeat_path(history), history):
        with suppress(OSError):
            return path.stat().st_mtime_ns
    return None


def _heartbeat_path(history: Path) -> Path:
    return history.with_name(f"{history.name}-heartbeat")


def _touch_heartbeat(path: Path, now: int) -> None:
    path.touch(mode=0o600)
    os.utime(path, ns=(now, now))


class AgentDowntime:
    """A status listener, called before the history writer: adds a downtime entry for each pod."""

    def __init__(
        self,
        writer: StatusHistoryWriter,
        history: Path,
        known_pods: frozenset[PodUID],
        *,
        last_alive_at: int | None,
        clock: Clock,
    ) -> None:
        """`known_pods`: the pods that the previous agent saw; `last_alive_at`: result of
        `last_alive`.

        The downtime ends now, whenever the pods are seen.
        """
        self._writer = writer
        self._path = _heartbeat_path(history)
        self._clock = clock
        self.started_at = clock.now()
        """In nanoseconds since the Unix epoch."""
        self._downtime_seconds = (
            0.0 if last_alive_at is None else (self.started_at - last_alive_at) / _SECOND
        )
        # After a clock step backwards the downtime is unknown.
        self._unreported_pods = set(known_pods) if self._downtime_seconds > 0 else set()

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:  # noqa: ARG002
        """Add a downtime entry when a known pod is seen for the first time."""
        self.record(pod)

    def on_pod_removed(self, pod: Pod) -> None:
        """Do nothing: a pod that has finished needs no downtime entry."""

    def record(self, pod: NamedPod) -> None:
        """Add a downtime entry for a known pod that has none yet."""
        uid = PodUID(pod.uid)
        if uid not in self._unreported_pods:
            return
        self._unreported_pods.discard(uid)
        self._writer.add_entry(pod, self._transition(), at=self.started_at)

    def record_node(self, name: str) -> None:
        """Add a downtime entry for the node of the agent, unless none ran here before."""
        if self._downtime_seconds > 0:
            self._writer.add_node_entry(name, self._transition(), at=self.started_at)

    def _transition(self) -> Transition:
        return Transition(kind=AGENT_DOWNTIME, duration_seconds=self._downtime_seconds)

    async def run(self) -> None:
        """Touch the heartbeat file every second, until cancelled."""
        while True:
            now = self._clock.now()
            with suppress(OSError):  # retried after a second
                # In a thread: a disk that hangs must not block the event loop.
                await asyncio.to_thread(_touch_heartbeat, self._path, now)
            await self._clock.wait(_PERIOD_SECONDS)
