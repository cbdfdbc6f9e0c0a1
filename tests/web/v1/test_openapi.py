"""The OpenAPI document has exactly the routes, parameters and responses of the server."""

import json
import re
from typing import Any

import pytest

from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.observe.ports import NodeSummary
from podstatus.observe.summary.container_state import ContainerStateSummary
from podstatus.observe.summary.pod import ConditionSummary, ContainerSummary
from podstatus.observe.transitions.compare_statuses import EVENT
from podstatus.web.routes import ROUTES
from podstatus.web.v1.endpoints import ENDPOINTS
from podstatus.web.v1.openapi import openapi_document
from tests.support.web.fake_status_view import a_pod, make_entry
from tests.support.web.node_server import Scene
from tests.web.v1.json_schema import faults

DOCUMENT: dict[str, Any] = json.loads(openapi_document())
FULL = a_pod(
    reason="Evicted",
    message="a message",
    qos="Burstable",
    static=True,
    started=Time.parse("2026-11-15T11:59:01.5Z"),
    deleting=Time.parse("2026-11-15T12:59:01Z"),
    terminating="Terminated: the node shuts down",
    ips=("10.0.0.1",),
    gates=("example.com/gate",),
    restart_policy="Always",
    conditions=(
        ConditionSummary(
            type="Ready",
            status="False",
            reason="ContainersNotReady",
            message="not ready",
            since=Time.parse("2026-11-15T11:59:02Z"),
        ),
    ),
    containers=(
        ContainerSummary(
            name="app",
            kind="sidecar",
            image="nginx",
            state=ContainerStateSummary(
                state="running", started_at=Time.parse("2026-11-15T11:59:03Z")
            ),
            last_state=ContainerStateSummary(
                state="terminated",
                reason="Error",
                message="m",
                exit_code=3,
                signal=9,
                started_at=Time.parse("2026-11-15T11:59:00Z"),
                finished_at=Time.parse("2026-11-15T11:59:02Z"),
            ),
            ready=True,
            started=True,
            restarts=2,
            created=True,
        ),
    ),
)
NODE = NodeSummary(
    name="node-1",
    ready=True,
    conditions={"Ready": "True"},
    capacity={"cpu": Quantity("2")},
    used={"cpu": 0.5},
    lease_age_seconds=1.5,
)


def test_every_route_and_method_is_there_and_no_other() -> None:
    there = {(path, method) for path, item in DOCUMENT["paths"].items() for method in item}
    assert there == {(it.pattern, method.lower()) for it in ROUTES for method in it.methods}


def test_every_parameter_is_there_with_a_sentence() -> None:
    for endpoint in ENDPOINTS:
        parameters = DOCUMENT["paths"][endpoint.pattern]["get"]["parameters"]
        named = re.findall(r"\{(\w+)\}", endpoint.pattern)
        assert [it["name"] for it in parameters if it["in"] == "path"] == named
        wanted = [it.name for it in endpoint.parameters]
        assert [it["name"] for it in parameters if it["in"] == "query"] == wanted
        assert all(it["description"].endswith(".") for it in parameters if it["in"] == "query")


def test_operations_have_names_of_their_own() -> None:
    ids = [op["operationId"] for item in DOCUMENT["paths"].values() for op in item.values()]
    assert len(ids) == len(set(ids))


def test_every_reference_leads_somewhere() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(DOCUMENT))) == set(schemas)


def test_what_is_open_asks_for_no_token() -> None:
    security = {path: item["get"]["security"] for path, item in DOCUMENT["paths"].items()}
    assert {} in security["/v1/pods"]
    assert security["/configz"] == [{"token": []}]


ASKED = {
    "/v1/pods": "/v1/pods",
    "/v1/pods/{namespace}/{name}": "/v1/pods/ns/p",
    "/v1/pods/{namespace}/{name}/timeline": "/v1/pods/ns/p/timeline",
    "/v1/nodes/{name}/timeline": "/v1/nodes/node-1/timeline",
    "/v1/node": "/v1/node",
    "/v1/nodes": "/v1/nodes",
    "/v1/nodes/{name}": "/v1/nodes/node-1",
    "/v1/events": "/v1/events",
    "/v1/alerts": "/v1/alerts",
    "/v1/status": "/v1/status",
}


def test_every_answer_of_ours_is_held_against_its_schema() -> None:
    assert set(ASKED) == {it.pattern for it in ENDPOINTS if it.response is not None}


@pytest.mark.parametrize("syncs", [True, False], ids=["agent", "observer"])
async def test_answers_are_as_the_document_says(scene: Scene, syncs: bool) -> None:
    scene.view.snapshot_cache.put(FULL)
    scene.view.snapshot_cache.put(a_pod("bare", conditions=(), containers=(), labels={}))
    scene.view.known_nodes = {"node-1": NODE}
    scene.view.entries = [make_entry(1), make_entry(2, kind=EVENT)]
    if not syncs:
        scene.view.sync_state = None
    for pattern, path in ASKED.items():
        code, text = await scene.get(path, token="")
        responses = DOCUMENT["paths"][pattern]["get"]["responses"]
        schema = responses["200"]["content"]["application/json"]["schema"]
        assert code == 200, pattern
        assert faults(json.loads(text), schema, DOCUMENT) == [], pattern


async def test_errors_match_the_document(scene: Scene) -> None:
    schema = DOCUMENT["paths"]["/v1/pods"]["get"]["responses"]["default"]["content"]
    paths = ("/v1/pods?x=1", "/v1/pods/ns/gone", "/v1/nope")
    for path in paths:
        code, text = await scene.get(path)
        assert code in (400, 404)
        assert faults(json.loads(text), schema["application/json"]["schema"], DOCUMENT) == []


async def test_every_field_of_a_pod_is_encoded(scene: Scene) -> None:
    scene.view.snapshot_cache.put(FULL)
    pod = json.loads((await scene.get("/v1/pods/ns/p"))[1])["pod"]
    shown = DOCUMENT["components"]["schemas"]
    assert set(pod) == set(shown["PodView"]["properties"])
    assert set(pod["containers"][0]) == set(shown["ContainerSummary"]["properties"])
    assert set(pod["conditions"][0]) == set(shown["ConditionSummary"]["properties"])


@pytest.mark.parametrize("path", ["/openapi.json", "/openapi/v3"])
async def test_the_document_is_there(scene: Scene, path: str) -> None:
    code, text = await scene.get(path, token="")
    assert (code, json.loads(text)) == (200, DOCUMENT)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"state": "healthy"}, "message is missing"),
        ({"state": "fine", "message": ""}, "is none of"),
        ({"state": "healthy", "message": 1}, "is no string"),
        ({"state": "healthy", "message": "", "more": 1}, "is not in the schema"),
    ],
)
def test_a_value_that_is_otherwise_is_found(value: Any, fault: str) -> None:
    schema = DOCUMENT["components"]["schemas"]["PodHealth"]
    (found,) = faults(value, schema, DOCUMENT)
    assert fault in found
