"""Pods that are bound to this node at the API server.

Upstream: NewSourceApiserver, pkg/kubelet/config/apiserver.go v1.36.4.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.client import PODS, Added, ObjectChange, Reflector, ReflectorPolicy, Removed, Updated
from podstatus.client.informer.list_watch_calls import ListerWatcher, ObjectSelection
from podstatus.kube.objects.pod import API_SOURCE, CONFIG_SOURCE, Pod

SOURCE = API_SOURCE
HEARTBEAT_SECONDS = 10.0
"""Interval of heartbeats, which an idle watch sends, too."""


class PodSink(Protocol):
    """Receives the pods. Implemented by `Mux`."""

    def deliver(self, source: str, pods: Iterable[Pod]) -> None:
        """Replace the desired set of a source."""

    def update(self, source: str, pod: Pod) -> None:
        """Add or update one pod of a source."""

    def remove(self, source: str, pod: Pod) -> None:
        """Remove one pod of a source."""


class ApiSource:
    """Delivers all pods of the node after the first list, then every change."""

    def __init__(
        self,
        client: ListerWatcher,
        node_name: str,
        sink: PodSink,
        *,
        clock: Clock,
        heartbeat: Callable[[], None],
        policy: ReflectorPolicy | None = None,
    ) -> None:
        self._sink = sink
        self._clock = clock
        self.heartbeat = heartbeat
        self._has_delivered = False
        self.reflector = Reflector(
            client,
            ObjectSelection(PODS, field_selector=f"spec.nodeName={node_name}"),
            Pod,
            self._on_change,
            policy=policy,
            clock=self._clock,
        )

    async def run(self) -> None:
        """Watch the API server until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.reflector.run())
            tasks.create_task(self._deliver_first())
            tasks.create_task(self._run_heartbeat())

    async def _deliver_first(self) -> None:
        await self.reflector.wait_synced()
        self.deliver_all()

    def deliver_all(self) -> None:
        """Deliver the whole content of the reflector; earlier changes are included."""
        self._has_delivered = True
        self._sink.deliver(SOURCE, map(mark_api_source, self.reflector.objects()))

    async def _run_heartbeat(self) -> None:
        while True:
            self.heartbeat()
            await self._clock.wait(HEARTBEAT_SECONDS)

    def _on_change(self, change: ObjectChange[Pod]) -> None:
        if not self._has_delivered:
            return
        self.heartbeat()
        match change:
            case Added(new) | Updated(_, new):
                self._sink.update(SOURCE, mark_api_source(new))
            case Removed(last):
                self._sink.remove(SOURCE, last)


def mark_api_source(pod: Pod) -> Pod:
    """The pod with its source annotation set to `api` if it names another source.

    A mirror pod carries the annotation of its static pod, and any client can set it; but only a
    pod from a file or URL is static. Upstream sets the annotation on all pods.
    """
    annotations = pod.metadata.annotations
    if not annotations or annotations.get(CONFIG_SOURCE, SOURCE) == SOURCE:
        return pod
    metadata = structs.replace(pod.metadata, annotations=annotations | {CONFIG_SOURCE: SOURCE})
    return structs.replace(pod, metadata=metadata)
