"""What a recorder records is what the server shows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote

import pytest
from msgspec import structs

from podstatus.client import ApiClient, kubeconfig_config
from podstatus.client.typed.events import HttpEventSink
from podstatus.events import reasons
from podstatus.events.correlator import AGGREGATE_PREFIX
from podstatus.events.counts import EventCounts
from podstatus.events.object_references import container_reference, node_reference, pod_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.api_errors import ConflictError, GoneError
from podstatus.kube.objects.event import Event, EventSeries
from podstatus.kube.objects.meta import ObjectMeta, ObjectReference
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.time import MicroTime
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from podstatus.testing.servers.access import ServerAccess
from tests.support.processes.api_servers import NODES, Document, RealServer, Server


class Scene:
    """A recorder whose events go to a server."""

    def __init__(self, sink: HttpEventSink) -> None:
        self.sink = sink
        self.clock = FakeClock("2026-11-15T12:00:00.25Z")
        self.recorder = EventRecorder(sink, host="node-a", clock=self.clock)

    async def send(self, seconds: float = 0) -> None:
        """Send what waits; then it is so much later."""
        while await self.recorder.send_once():
            pass
        await self.clock.advance(seconds)


@asynccontextmanager
async def recording(access: ServerAccess) -> AsyncIterator[Scene]:
    """Yield a scene; all its events have been sent on exit."""
    async with ApiClient(kubeconfig_config(access.kubeconfig)) as client, asyncio.timeout(90):
        scene = Scene(HttpEventSink(client))
        yield scene
        await scene.send()


def shown(server: Server, namespace: str, **fields: str) -> list[Document]:
    """The events of a namespace, the oldest first, as a user finds them."""
    selector = quote(",".join(f"{key.replace('_', '.')}={fields[key]}" for key in fields))
    path = f"/api/v1/namespaces/{namespace}/events?fieldSelector={selector}"
    code, answer = server.client.get(path)
    assert code == 200, answer
    items: list[Document] = answer["items"]
    return sorted(items, key=lambda item: str(item["metadata"]["name"]))


def delete_events(server: Server, namespace: str) -> None:
    for event in shown(server, namespace):
        name = event["metadata"]["name"]
        server.client.delete(f"/api/v1/namespaces/{namespace}/events/{name}")


def web(namespace: str) -> Pod:
    return make_pod("web", namespace=namespace, uid="u-1", containers=["app"])


async def test_a_repeated_event_is_one_with_a_count(server: Server, namespace: str) -> None:
    async with recording(server.access) as scene:
        for _ in range(3):
            about = container_reference(web(namespace), "app")
            scene.recorder.warn(about, reasons.BACK_OFF, "Back-off <restarting> …")
            await scene.send(seconds=10)
    assert scene.recorder.counts == EventCounts(recorded=3, sent=1, patched=2)
    (event,) = shown(server, namespace)
    name = event.pop("metadata")["name"]
    assert name == f"web.{FakeClock('2026-11-15T12:00:00.25Z').now():x}"
    assert {key: event[key] for key in event if key not in ("kind", "apiVersion")} == {
        "involvedObject": {
            "kind": "Pod",
            "namespace": namespace,
            "name": "web",
            "uid": "u-1",
            "apiVersion": "v1",
            "fieldPath": "spec.containers{app}",
        },
        "reason": "BackOff",
        "message": "Back-off <restarting> …",
        "source": {"component": "kubelet", "host": "node-a"},
        "firstTimestamp": "2026-11-15T12:00:00Z",
        "lastTimestamp": "2026-11-15T12:00:20Z",
        "count": 3,
        "type": "Warning",
        "eventTime": None,
        "reportingComponent": "kubelet",
        "reportingInstance": "node-a",
    }


async def test_similar_events_are_combined(server: Server, namespace: str) -> None:
    async with recording(server.access) as scene:
        for number in range(13):
            scene.recorder.warn(
                pod_reference(web(namespace)), reasons.UNHEALTHY, f"failed: {number}"
            )
            await scene.send(seconds=1)
    assert scene.recorder.counts == EventCounts(recorded=13, sent=10, patched=3)
    *apart, combined = shown(server, namespace, reason="Unhealthy")
    assert [(event["message"], event["count"]) for event in apart] == [
        (f"failed: {number}", 1) for number in range(9)
    ]
    assert (combined["message"], combined["count"]) == (f"{AGGREGATE_PREFIX}failed: 12", 4)
    assert combined["reportingComponent"] == "kubelet"


async def test_an_event_that_is_gone_is_created_anew(server: Server, namespace: str) -> None:
    async with recording(server.access) as scene:
        for _ in range(2):
            delete_events(server, namespace)
            scene.recorder.normal(pod_reference(web(namespace)), reasons.KILLING, "Stopping")
            await scene.send(seconds=1)
    assert scene.recorder.counts == EventCounts(recorded=2, sent=2)
    (event,) = shown(server, namespace)
    assert (event["count"], event["firstTimestamp"]) == (2, "2026-11-15T12:00:00Z")


async def test_events_about_what_is_in_no_namespace_are_found_as_kubectl_looks_for_them(
    server: Server, namespace: str
) -> None:
    node = f"node-{namespace}"
    async with recording(server.access) as scene:
        message = f"Node {node} status is now: {reasons.NODE_READY}"
        scene.recorder.normal(node_reference(node), reasons.NODE_READY, message)
    assert scene.recorder.counts.sent == 1
    found = shown(
        server,
        "default",
        involvedObject_kind="Node",
        involvedObject_name=node,
        involvedObject_uid=node,
    )
    assert [event["message"] for event in found] == [f"Node {node} status is now: NodeReady"]


async def test_what_happens_in_a_namespace_that_goes_is_dropped(
    server: Server, namespace: str
) -> None:
    server.client.delete(f"/api/v1/namespaces/{namespace}")
    async with recording(server.access) as scene:
        scene.recorder.normal(pod_reference(web(namespace)), reasons.KILLING, "Stopping")
        scene.recorder.normal(pod_reference(web("never-there")), reasons.KILLING, "Stopping")
    assert scene.recorder.counts == EventCounts(recorded=2, dropped={"namespace_gone": 2})


async def test_a_name_that_cannot_grow_is_no_obstacle(server: Server, namespace: str) -> None:
    about = pod_reference(make_pod("p" * 253, namespace=namespace))
    async with recording(server.access) as scene:
        for _ in range(2):
            scene.recorder.normal(about, reasons.STARTED, "Container started")
    assert scene.recorder.counts == EventCounts(recorded=2, sent=1, patched=1)


async def test_the_sink_says_what_went_wrong(server: Server, namespace: str) -> None:
    async with recording(server.access) as scene:
        event = Event(
            metadata=ObjectMeta(name="e", namespace=namespace),
            involved_object=ObjectReference(namespace=namespace),
        )
        await scene.sink.create(event)
        with pytest.raises(ConflictError):
            await scene.sink.create(event)
        with pytest.raises(GoneError):
            await scene.sink.patch(namespace, "nobody", b'{"count":2}')


async def test_times_of_microseconds_come_back_as_they_were(server: Server, namespace: str) -> None:
    time = MicroTime.from_unix_nanos(FakeClock("2026-11-15T12:00:00.25Z").now())
    event = Event(
        metadata=ObjectMeta(name="e", namespace=namespace),
        involved_object=ObjectReference(namespace=namespace),
        event_time=time,
        series=EventSeries(count=2, last_observed_time=time),
        reason="Tested",
        action="Testing",
        type="Normal",
        reporting_component="podstatus.dev/tests",
        reporting_instance="me",
    )
    async with recording(server.access) as scene:
        back = await scene.sink.create(event)
        assert structs.replace(back, metadata=event.metadata, kind="", api_version="") == event
    (found,) = shown(server, namespace)
    assert found["eventTime"] == "2026-11-15T12:00:00.250000Z"


async def test_the_agent_of_a_node_may_record_events(real_server: RealServer) -> None:
    namespace = real_server.new_namespace()
    access = real_server.node_access(NODES[0])
    async with recording(access) as scene:
        for _ in range(2):
            scene.recorder.normal(
                pod_reference(web(namespace)), reasons.STARTED, "Container started"
            )
    assert scene.recorder.counts == EventCounts(recorded=2, sent=1, patched=1)
