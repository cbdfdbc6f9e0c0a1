"""Discovery and OpenAPI documents, as clients read them."""

import json
from typing import Any

import pytest

from podstatus.apiserver.discovery.endpoints import find_endpoint
from podstatus.apiserver.http.messages import Response
from podstatus.apiserver.resources import RESOURCES, SERVED_RESOURCES

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
OLDER = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
KUBECTL = f"{AGGREGATED},{OLDER},application/json"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def page(path: str, accept: str = "application/json") -> Response:
    response = find_endpoint(path, accept)
    assert response is not None, path
    return response


def document(path: str, accept: str = "application/json") -> Any:
    return json.loads(page(path, accept).body)


def rows(path: str) -> dict[str, Any]:
    return {row["name"]: row for row in document(path)["resources"]}


# As kube-apiserver v1.36.4 serves them (api/discovery/api__v1.json), without the storage hash.
ALL_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
RECORDED = [
    {"kind": "Pod", "name": "pods", "namespaced": True, "singularName": "pod", "verbs": ALL_VERBS}
    | {"shortNames": ["po"], "categories": ["all"]},
    {"kind": "Node", "name": "nodes", "namespaced": False, "singularName": "node"}
    | {"shortNames": ["no"], "verbs": ALL_VERBS},
    {"kind": "Namespace", "name": "namespaces", "namespaced": False, "singularName": "namespace"}
    | {"shortNames": ["ns"], "verbs": [verb for verb in ALL_VERBS if verb != "deletecollection"]},
    {"kind": "Secret", "name": "secrets", "namespaced": True, "singularName": "secret"}
    | {"verbs": ALL_VERBS},
    {"kind": "Pod", "name": "pods/status", "namespaced": True, "singularName": ""}
    | {"verbs": ["get", "patch", "update"]},
    {"kind": "Pod", "name": "pods/log", "namespaced": True, "singularName": "", "verbs": ["get"]},
    {"kind": "Binding", "name": "pods/binding", "namespaced": True, "singularName": ""}
    | {"verbs": ["create"]},
    {"kind": "PodExecOptions", "name": "pods/exec", "namespaced": True, "singularName": ""}
    | {"verbs": ["create", "get"]},
    {"kind": "NodeProxyOptions", "name": "nodes/proxy", "namespaced": False, "singularName": ""}
    | {"verbs": ["create", "delete", "get", "patch", "update"]},
]


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda row: str(row["name"]))
def test_resources_are_listed_as_by_kube_apiserver(recorded: dict[str, Any]) -> None:
    assert rows("/api/v1")[recorded["name"]] == recorded


def test_metrics_are_listed_as_by_metrics_server() -> None:
    row = {"singularName": "", "verbs": ["get", "list"]}
    assert list(rows("/apis/metrics.k8s.io/v1beta1").values()) == [
        {"name": "nodes", "namespaced": False, "kind": "NodeMetrics"} | row,
        {"name": "pods", "namespaced": True, "kind": "PodMetrics"} | row,
    ]


@pytest.mark.parametrize("resource", SERVED_RESOURCES, ids=lambda resource: resource.kind)
def test_every_resource_is_found_plain_and_aggregated(resource: Any) -> None:
    assert resource.plural in rows(resource.prefix)
    discovery = document("/apis" if resource.group else "/api", KUBECTL)
    group = next(i for i in discovery["items"] if i["metadata"].get("name", "") == resource.group)
    aggregated = {row["resource"]: row for row in group["versions"][0]["resources"]}
    below = [row["subresource"] for row in aggregated[resource.plural].get("subresources", [])]
    assert below == sorted(resource.subresources)


def test_groups_are_listed() -> None:
    groups = []
    for name, number in (("coordination.k8s.io", "v1"), ("metrics.k8s.io", "v1beta1")):
        version = {"groupVersion": f"{name}/{number}", "version": number}
        groups.append({"name": name, "versions": [version], "preferredVersion": version})
        named = {"kind": "APIGroup", "apiVersion": "v1"} | groups[-1]
        assert document(f"/apis/{name}") == named
    assert document("/apis")["groups"] == groups
    assert document("/api")["versions"] == ["v1"]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (KUBECTL, "APIGroupDiscoveryList"),
        (AGGREGATED, "APIGroupDiscoveryList"),
        (f"{AGGREGATED};profile=nopeer,{KUBECTL}", "APIGroupDiscoveryList"),
        (f"{OLDER},application/json", "APIGroupList"),
        (f"application/json,{AGGREGATED}", "APIGroupList"),
        ("application/json", "APIGroupList"),
        ("*/*", "APIGroupList"),
        ("", "APIGroupList"),
    ],
)
def test_the_first_type_that_can_be_served_is(accept: str, kind: str) -> None:
    answer = page("/apis", accept)
    assert json.loads(answer.body)["kind"] == kind
    assert ("apidiscovery.k8s.io" in answer.content_type) is (kind == "APIGroupDiscoveryList")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_health_is_ok(path: str) -> None:
    assert page(path).body == b"ok"


def test_the_version_is_that_of_the_api_with_who_serves_it() -> None:
    version = document("/version")
    assert (version["major"], version["minor"]) == ("1", "36")
    assert version["gitVersion"].endswith("+podstatus")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2",
        "/apis/none",
        "/apis/coordination.k8s.io/v9",
        "/apis//v1",
        "/api/v1/pods",
        "/openapi",
        "/openapi/v3/api/v2",
        "/openapi/v4",
        "/nothing",
    ],
)
def test_what_is_no_page_is_left_to_others(path: str) -> None:
    assert find_endpoint(path) is None


def test_a_client_that_accepts_only_protobuf_gets_406() -> None:
    assert page("/openapi/v2", PROTOBUF).code == 406
    assert page("/openapi/v2", f"{PROTOBUF},application/json").code == 200


def schemas(path: str = "/openapi/v3/api/v1") -> dict[str, Any]:
    schemas: dict[str, Any] = document(path)["components"]["schemas"]
    return schemas


def test_the_index_leads_to_the_documents() -> None:
    index = document("/openapi/v3")["paths"]
    assert set(index) == {it.prefix.lstrip("/") for it in SERVED_RESOURCES}
    for entry in index.values():
        assert document(entry["serverRelativeURL"].partition("?")[0])["openapi"] == "3.0.0"


def test_lists_carry_how_they_are_patched() -> None:
    spec = schemas()["io.k8s.api.core.v1.PodSpec"]["properties"]
    assert spec["containers"] == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"},
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "name",
    }
    assert spec["volumes"]["x-kubernetes-patch-strategy"] == "merge,retainKeys"
    assert "x-kubernetes-patch-strategy" not in spec["tolerations"]
    meta = schemas()["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"]
    assert meta["finalizers"]["x-kubernetes-patch-strategy"] == "merge"
    assert "x-kubernetes-patch-merge-key" not in meta["finalizers"]


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


@pytest.mark.parametrize(
    "path",
    [
        "/openapi/v2",
        "/openapi/v3/api/v1",
        "/openapi/v3/apis/coordination.k8s.io/v1",
        "/openapi/v3/apis/metrics.k8s.io/v1beta1",
    ],
)
def test_every_reference_leads_somewhere(path: str) -> None:
    openapi = document(path)
    for reference in references(openapi):
        target = openapi
        for key in reference.removeprefix("#/").split("/"):
            target = target[key]
        assert target["type"] == "object"


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_kubectl_finds_that_patch_validates_fields(resource: Any) -> None:
    openapi = document(f"/openapi/v3{resource.prefix}")
    kind = {"group": resource.group, "kind": resource.kind, "version": resource.version}
    patches = [item["patch"] for item in openapi["paths"].values() if "patch" in item]
    own = [patch for patch in patches if patch["x-kubernetes-group-version-kind"] == kind]
    assert own
    for patch in own:
        assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}
        assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
    named = [s for s in openapi["components"]["schemas"].values() if kind in s.get(KINDS, [])]
    assert len(named) == 1


KINDS = "x-kubernetes-group-version-kind"


def test_version_2_has_no_words_that_only_version_3_has() -> None:
    assert b"oneOf" not in page("/openapi/v2").body
