"""The observer: records when a flip has arrived, with a watch of all pods in its own process."""

import asyncio
import contextlib
import sys
import time

import msgspec

from peers.node_pods import way_in
from peers.orders import Await, Lines, Seen, Start, Started
from podstatus.client.api_client import ApiClient
from podstatus.client.rest.resources import PODS
from podstatus.client.rest.watch_events import BOOKMARK

_LONG = 3_600
"""Seconds; longer than the benchmark."""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _Status(msgspec.Struct, frozen=True):
    conditions: list[_Condition] = []


class _Seen(msgspec.Struct, frozen=True):
    """The required fields of a pod only, for fast decoding."""

    metadata: _Meta
    spec: _Spec = _Spec()
    status: _Status = _Status()

    def ready(self) -> bool:
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)


class _List(msgspec.Struct, frozen=True):
    metadata: _Meta
    items: list[_Seen]


read_pod = msgspec.json.Decoder(_Seen).decode


class Node:
    """The readiness of the pods of a node, and when each was first observed so."""

    def __init__(self) -> None:
        self._ready: dict[str, bool] = {}
        self._since: dict[str, int] = {}
        self._ready_pods = 0

    def take(self, pod: _Seen, now: int) -> None:
        """Record a pod from the watch."""
        name, ready = pod.metadata.name, pod.ready()
        before = self._ready.get(name)
        if before is not ready:
            self._ready[name], self._since[name] = ready, now
            self._ready_pods += ready - bool(before)

    def are_all(self, *, ready: bool) -> bool:
        """Whether all pods have this readiness."""
        return self._ready_pods == (len(self._ready) if ready else 0)

    def since(self) -> list[int]:
        """Return the time of the last change of each pod, in ns."""
        return list(self._since.values())


class Observer:
    """The pods of all nodes, with a wait for their readiness."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._changed = asyncio.Event()

    def take(self, pod: _Seen, now: int) -> None:
        """Record a pod from the watch."""
        self._nodes.setdefault(pod.spec.node_name, Node()).take(pod, now)
        self._changed.set()

    async def wait_for(self, order: Await) -> Seen:
        """Wait until all pods of a node have been observed with this readiness."""
        node = self._nodes[order.node]
        while not node.are_all(ready=order.ready):
            self._changed.clear()
            await self._changed.wait()
        return Seen(node.since())


async def follow(client: ApiClient, version: str, observer: Observer) -> None:
    """Watch all pods; resume when the server ends the watch."""
    while True:
        async with client.watch(PODS, resource_version=version, timeout_seconds=_LONG) as events:
            async for event in events:
                pod = read_pod(event.object)
                version = pod.metadata.resource_version
                if event.type != BOOKMARK:
                    observer.take(pod, time.time_ns())
        print("observer: the server ended the watch, resuming it", file=sys.stderr, flush=True)


async def main() -> None:
    """Run the observer on standard input and output."""
    lines = await Lines.open()
    start = await lines.read(Start)
    if start is None:
        return
    observer = Observer()
    async with ApiClient(way_in(start)) as client, asyncio.TaskGroup() as tasks:
        listed = msgspec.json.decode(await client.list(PODS), type=_List)
        for pod in listed.items:
            observer.take(pod, time.time_ns())
        watch = tasks.create_task(follow(client, listed.metadata.resource_version, observer))
        lines.write(Started(len(listed.items), ready=False))
        while (order := await lines.read(Await)) is not None:
            lines.write(await observer.wait_for(order))
        watch.cancel()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
