"""The pods that the API server has bound to this node.

Upstream: NewSourceApiserver, pkg/kubelet/config/apiserver.go v1.36.4.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import structs

from podstatus.base.aio import SystemClock
from podstatus.base.clock import Clock
from podstatus.client import PODS, Added, ObjectChange, Reflector, ReflectorPolicy, Removed, Updated
from podstatus.client.informer.listwatch import ListerWatcher
from podstatus.kube.objects.pod import API_SOURCE, CONFIG_SOURCE, Pod

SOURCE = API_SOURCE
HEARTBEAT_SECONDS = 10.0
"""A watch that has nothing to tell is alive all the same."""


class PodSink(Protocol):
    """Who is told: `Mux` is."""

    def deliver(self, source: str, pods: Iterable[Pod]) -> None:
        """All pods of a source."""

    def update(self, source: str, pod: Pod) -> None:
        """One that is new or has changed."""

    def remove(self, source: str, pod: Pod) -> None:
        """One that is gone."""


class ApiSource:
    """Delivers all pods of the node once the first list is there, then every change."""

    def __init__(
        self,
        client: ListerWatcher,
        node_name: str,
        sink: PodSink,
        *,
        policy: ReflectorPolicy | None = None,
        clock: Clock | None = None,
        heartbeat: Callable[[], None] = lambda: None,
    ) -> None:
        self._sink = sink
        self._clock = clock or SystemClock()
        self.heartbeat = heartbeat
        self._has_delivered = False
        self.reflector = Reflector(
            client,
            PODS,
            Pod,
            self._on_change,
            field_selector=f"spec.nodeName={node_name}",
            policy=policy,
            clock=self._clock,
        )

    async def run(self) -> None:
        """Follow the server until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.reflector.run())
            tasks.create_task(self._deliver_first())
            tasks.create_task(self._run_heartbeat())

    async def _deliver_first(self) -> None:
        await self.reflector.wait_synced()
        self.deliver_all()

    def deliver_all(self) -> None:
        """Deliver what the reflector knows; it has heard of all that was told until now."""
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
    """The pod, marked as one of the API server if it claims to be from elsewhere.

    A mirror pod has the source of its static pod, and anybody may write that of theirs; only what
    comes from a file or a URL is a static pod. Upstream marks all pods, we only those.
    """
    annotations = pod.metadata.annotations
    if not annotations or annotations.get(CONFIG_SOURCE, SOURCE) == SOURCE:
        return pod
    marked = structs.replace(pod.metadata, annotations=annotations | {CONFIG_SOURCE: SOURCE})
    return structs.replace(pod, metadata=marked)
