"""The wire form of /v1: camelCase keys, typed container states, one set of structs."""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from typing import Any, get_type_hints

import msgspec
import pytest
from msgspec import structs

import podstatus.cli
from podstatus.alerts.model import RuleState
from podstatus.alerts.ports import DeliveryState
from podstatus.cli.client.query_api_client import QueryClient, decode_response
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStatus
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.node_tables import NodeLoadSample
from podstatus.observe.history.sqlite_store import node_entry
from podstatus.observe.ports import NodeSummary
from podstatus.observe.summary.container_state import (
    ContainerStateSummary,
    format_container_state,
    parse_container_state,
)
from podstatus.observe.summary.node_load import LoadAverage, NodeLoad, ResourceLoad
from podstatus.observe.summary.pod import ContainerSummary, summarize_pod
from podstatus.observe.transitions import compare_statuses as kinds
from podstatus.observe.transitions.compare_statuses import Transition, status_transitions
from podstatus.testing.builders import ended, make_pod, make_status, running, waiting
from podstatus.web.v1 import wire
from podstatus.web.v1.endpoints import ENDPOINTS
from podstatus.web.v1.openapi import openapi_document
from podstatus.web.v1.wire import PodView, encode_response, pod_view
from podstatus.web.watch.sse import encode_event
from tests.support.web.fake_alerts import an_alert
from tests.support.web.fake_status_view import AT, make_entry
from tests.support.web.node_server import Scene

NOW = Time.parse("2026-11-15T12:00:00Z")
FREE_KEYS = ("labels", "annotations")
"""Maps whose keys belong to users."""
PATHS = {
    "/v1/pods": "/v1/pods",
    "/v1/pods/{namespace}/{name}": "/v1/pods/default/crashing",
    "/v1/pods/{namespace}/{name}/timeline": "/v1/pods/default/crashing/timeline",
    "/v1/nodes/{name}/timeline": "/v1/nodes/node-1/timeline",
    "/v1/node": "/v1/node",
    "/v1/nodes": "/v1/nodes",
    "/v1/nodes/{name}": "/v1/nodes/node-1",
    "/v1/events": "/v1/events",
    "/v1/alerts": "/v1/alerts",
    "/v1/status": "/v1/status",
}


def restarted(status: ContainerStatus, code: int) -> ContainerStatus:
    return structs.replace(status, last_state=ended("app", code).state, restart_count=2)


PODS = (
    make_pod("bare"),
    make_pod("starting", status=make_status("Pending", waiting("app"))),
    make_pod("web", status=make_status("Running", running("app"), Ready="True")),
    make_pod("crashing", status=make_status("Running", restarted(waiting("app", "Crash"), 3))),
    make_pod("again", status=make_status("Running", restarted(running("app"), 137))),
    make_pod("done", status=make_status("Succeeded", ended("app"))),
    make_pod("failed", status=make_status("Failed", ended("app", 1, message="it broke"))),
    make_pod(
        "init",
        init_containers=("setup",),
        sidecars=("proxy",),
        status=structs.replace(
            make_status("Pending", waiting("app", "PodInitializing")),
            init_container_statuses=(ended("setup"), running("proxy")),
        ),
    ),
)


NODE_LOAD = NodeLoad(
    cpu=ResourceLoad(
        used=0.12345,
        allocatable=2.0,
        used_fraction=0.0617,
        averages={"1m": LoadAverage(used=0.12345, used_fraction=0.0617, covered_seconds=9.9999)},
    ),
    age_seconds=0.00049,
)


def fill(scene: Scene) -> None:
    view = scene.view
    for pod in PODS:
        view.snapshot_cache.put(summarize_pod(pod))
    view.known_nodes = {
        "node-1": NodeSummary(
            name="node-1",
            ready=True,
            used={"cpu": 0.5},
            used_fractions={"cpu": 0.25},
            load=NODE_LOAD,
            disk_full_in_seconds=60.0,
            lease_age_seconds=1.5,
        )
    }
    crashing = next(pod for pod in PODS if pod.name == "crashing")
    changes = status_transitions(make_status("Running", running("app")), crashing.status)
    view.entries = [
        structs.replace(make_entry(number, "crashing", namespace="default"), transition=change)
        for number, change in enumerate(changes, start=1)
    ]
    started = Transition(kind=kinds.EVENT, after="Normal")
    view.entries.append(node_entry("node-1", AT, started, id=8))
    view.samples = [NodeLoadSample(node="node-1", at=AT, cpu=0.12345)]
    view.entries.append(make_entry(9, "crashing", kind=kinds.EVENT, namespace="default"))


async def answers(scene: Scene) -> dict[str, str]:
    fill(scene)
    alerts = scene.alerts
    alerts.known = {
        alert.id: alert
        for alert in (an_alert("web"), an_alert("db", state="resolved"), an_alert(scope="node"))
    }
    alerts.states = [RuleState(name="R", scope="pod", switched_off=True)]
    alerts.receivers = [DeliveryState(name="log", rules=("R",))]
    found = {}
    for pattern, path in PATHS.items():
        code, found[pattern] = await scene.get(path)
        assert code == 200, found[pattern]
    _, found["error"] = await scene.get("/v1/pods?nope=1")
    return found


def keys(value: Any) -> Iterator[str]:
    """All keys of a document, without those that users choose."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in FREE_KEYS:
                yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def with_underscore(document: Any) -> list[str]:
    return sorted({key for key in keys(document) if "_" in key})


def test_every_endpoint_with_a_response_is_tested() -> None:
    assert set(PATHS) == {it.pattern for it in ENDPOINTS if it.response is not None}


async def test_no_key_of_a_response_has_an_underscore(scene: Scene) -> None:
    for pattern, text in (await answers(scene)).items():
        assert with_underscore(json.loads(text)) == [], pattern


async def test_the_timeline_of_a_node_decodes(scene: Scene) -> None:
    body = (await answers(scene))["/v1/nodes/{name}/timeline"]
    response = decode_response(body.encode(), wire.NodeTimelineResponse)
    (load,) = response.load
    assert wire.parse_node_load(load, "node-1") == NodeLoadSample(node="node-1", at=AT, cpu=0.123)
    assert json.loads(body)["load"] == [{"at": "2026-11-15T12:00:00.000Z", "cpu": 0.123}]
    (event,) = response.transitions
    assert (event.name, event.namespace, event.uid, event.after) == ("node-1", "", "", "Normal")


async def test_a_load_is_rounded_and_what_is_unknown_is_left_out(scene: Scene) -> None:
    load = json.loads((await answers(scene))["/v1/nodes/{name}"])["node"]["load"]
    assert load["cpu"] == {
        "used": 0.123,
        "allocatable": 2,
        "usedFraction": 0.062,
        "averages": {"1m": {"used": 0.123, "usedFraction": 0.062, "coveredSeconds": 10}},
    }
    assert (load["memory"], load["ageSeconds"]) == ({}, 0)


def test_no_key_or_parameter_of_the_openapi_document_has_an_underscore() -> None:
    document = json.loads(openapi_document())
    assert with_underscore(document) == []
    parameters = [
        parameter["name"]
        for path, item in document["paths"].items()
        for operation in item.values()
        for parameter in operation["parameters"]
        if path.startswith("/v1/")
    ]
    assert parameters
    assert [name for name in parameters if "_" in name] == []


def test_no_key_of_an_event_has_an_underscore() -> None:
    events: list[msgspec.Struct] = [
        *(pod_view(summarize_pod(pod), NOW) for pod in PODS),
        wire.DeletedEvent(uid=PODS[0].uid, namespace="default", name="bare"),
        wire.transition_view(make_entry(3)),
        wire.GapEvent(after=3, before=7),
        wire.SyncedEvent(resumed=True),
        wire.ResetEvent(reason="restarted"),
        wire.ClosingEvent(reason="too slow"),
    ]
    bodies = [encode_event(event) for event in events]
    names = {body.split(b"\n")[0].removeprefix(b"event: ").decode() for body in bodies}
    assert names == {"pod", "deleted", "transition", "gap", "synced", "reset", "closing"}
    for body in bodies:
        assert with_underscore(json.loads(body.split(b"data: ")[1])) == []


@pytest.mark.parametrize(
    ("status", "document"),
    [
        pytest.param(
            waiting("app", "ImagePullBackOff"),
            {"state": "waiting", "reason": "ImagePullBackOff"},
            id="waiting",
        ),
        pytest.param(
            running("app"), {"state": "running", "startedAt": "2024-01-01T00:00:00Z"}, id="running"
        ),
        pytest.param(
            ended("app", 0),
            {
                "state": "terminated",
                "reason": "Completed",
                "exitCode": 0,
                "startedAt": "2024-01-01T00:00:00Z",
                "finishedAt": "2024-01-01T00:01:00Z",
            },
            id="terminated with 0",
        ),
        pytest.param(
            ended("app", 3, message="it broke"),
            {
                "state": "terminated",
                "reason": "Error",
                "message": "it broke",
                "exitCode": 3,
                "startedAt": "2024-01-01T00:00:00Z",
                "finishedAt": "2024-01-01T00:01:00Z",
            },
            id="terminated with an error",
        ),
    ],
)
def test_a_container_state_is_a_struct_and_decodes(
    status: ContainerStatus, document: dict[str, Any]
) -> None:
    summary = container(make_pod(status=make_status("Running", status)))
    text = encode_response(summary)
    assert json.loads(text)["state"] == document
    decoded = decode_response(text, ContainerSummary)
    assert decoded == summary
    assert decoded.state is not None
    assert (decoded.state.is_waiting, decoded.state.is_running, decoded.state.is_terminated) == (
        document["state"] == "waiting",
        document["state"] == "running",
        document["state"] == "terminated",
    )


def container(pod: Pod) -> ContainerSummary:
    (only,) = summarize_pod(pod).containers
    return only


def test_a_container_without_a_state_has_none() -> None:
    assert "state" not in json.loads(encode_response(container(make_pod())))


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("", None),
        ("running", ContainerStateSummary(state="running")),
        ("waiting", ContainerStateSummary(state="waiting")),
        ("waiting Crash", ContainerStateSummary(state="waiting", reason="Crash")),
        ("terminated 3", ContainerStateSummary(state="terminated", exit_code=3)),
        (
            "terminated Error -1",
            ContainerStateSummary(state="terminated", reason="Error", exit_code=-1),
        ),
        ("terminated Error", ContainerStateSummary(state="terminated", reason="Error")),
    ],
)
def test_a_state_of_the_history_file_is_read_as_it_was_written(
    text: str, state: ContainerStateSummary | None
) -> None:
    assert parse_container_state(text) == state
    assert format_container_state(state) == text


async def test_transitions_of_containers_have_both_states(scene: Scene) -> None:
    text = (await answers(scene))["/v1/pods/{namespace}/{name}/timeline"]
    containers = [it for it in json.loads(text)["transitions"] if it["kind"] == "container"]
    assert [(it["stateBefore"], it["stateAfter"]) for it in containers] == [
        ({"state": "running"}, {"state": "terminated", "reason": "Error", "exitCode": 3}),
        (
            {"state": "terminated", "reason": "Error", "exitCode": 3},
            {"state": "waiting", "reason": "Crash"},
        ),
    ]
    assert all("before" not in it and "after" not in it for it in containers)


async def test_the_commands_decode_what_the_server_encodes_with_the_same_structs(
    scene: Scene,
) -> None:
    found = await answers(scene)
    for endpoint in ENDPOINTS:
        if endpoint.response is not None:
            text = found[endpoint.pattern]
            decoded = decode_response(text.encode(), endpoint.response)
            assert json.loads(encode_response(decoded)) == json.loads(text), endpoint.pattern


def test_the_client_returns_wire_structs() -> None:
    for method, struct in (
        (QueryClient.nodes, wire.NodesResponse),
        (QueryClient.timeline, wire.TransitionsResponse),
        (QueryClient.events, wire.TransitionsResponse),
        (QueryClient.pods, list[wire.PodView]),
        (QueryClient.pod, wire.PodView | None),
    ):
        assert get_type_hints(method)["return"] == struct


def test_the_commands_declare_no_copy_of_a_wire_struct() -> None:
    shared = [it for it in vars(wire).values() if _is_struct(it) and it is not wire.CamelStruct]
    copies = [
        f"{own.__module__}.{own.__name__}"
        for own in _structs_of(podstatus.cli)
        for struct in shared
        if len(own.__struct_fields__) > 1
        and set(own.__struct_fields__) <= set(struct.__struct_fields__)
    ]
    assert copies == []


def _structs_of(package: Any) -> Iterator[type[msgspec.Struct]]:
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not info.name.endswith("__main__"):
            module = importlib.import_module(info.name)
            for value in vars(module).values():
                if _is_struct(value) and value.__module__ == module.__name__:
                    yield value


def _is_struct(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, msgspec.Struct)


def test_a_pod_survives_the_way_to_the_client() -> None:
    for pod in PODS:
        view = pod_view(summarize_pod(pod), NOW)
        assert decode_response(encode_response(view), PodView) == view
