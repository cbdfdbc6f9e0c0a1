import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.request.json_patch import (
    MAX_COPIED_BYTES,
    JsonPatchError,
    apply_json_patch,
)
from podstatus.apiserver.request.patch import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    apply_merge_patch,
    apply_patch_body,
    check_patch_type,
)
from podstatus.apiserver.resources import CONFIG_MAPS, LEASES, NAMESPACES, PODS, SERVICE_ACCOUNTS
from podstatus.apiserver.strategies.base import Document

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=3),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text("ab"), below, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text("ab", max_size=2), JSON, max_size=4)


def operation(op: str, path: str, value: Any = None, **rest: Any) -> dict[str, Any]:
    return {"op": op, "path": path, "value": value, **rest}


@pytest.mark.parametrize(
    ("document", "operations", "result"),
    [
        ({}, [operation("add", "/a", 1)], {"a": 1}),
        ({"a": [1, 2]}, [operation("add", "/a/0", 0)], {"a": [0, 1, 2]}),
        ({"a": [1, 2]}, [operation("add", "/a/2", 3)], {"a": [1, 2, 3]}),
        ({"a": [1, 2]}, [operation("add", "/a/-", 3)], {"a": [1, 2, 3]}),
        ({"a": [1, 2]}, [operation("add", "/a/-1", 3)], {"a": [1, 2, 3]}),
        ({"a": [1, 2]}, [operation("remove", "/a/-1")], {"a": [1]}),
        ({"a": {"b": 1}}, [operation("remove", "/a/b")], {"a": {}}),
        ({"a": 1}, [operation("replace", "/a", 2)], {"a": 2}),
        ({}, [operation("replace", "/absent", 2)], {"absent": 2}),
        ({"a": 1}, [operation("replace", "", {"b": 2})], {"b": 2}),
        ({"a": 1}, [operation("move", "/b", **{"from": "/a"})], {"b": 1}),
        ({"a": [1]}, [operation("copy", "/b", **{"from": "/a"})], {"a": [1], "b": [1]}),
        ({}, [operation("copy", "/b", **{"from": "/a"})], {"b": None}),
        ({"a/b": {"~": 1}}, [operation("replace", "/a~1b/~0", 2)], {"a/b": {"~": 2}}),
        ({"~1": 1}, [operation("remove", "/~01")], {}),
        ({"a": 1}, [operation("test", "/a", 1), operation("remove", "/a")], {}),
        ({"a": 1}, [operation("test", "", {"a": 1})], {"a": 1}),
        ({}, [operation("test", "/a", None)], {}),
        ({}, [{"op": "add", "path": "/a"}], {"a": None}),
    ],
)
def test_operations_do_what_they_say(
    document: Document, operations: list[dict[str, Any]], result: Document
) -> None:
    assert apply_json_patch(document, operations) == result


@pytest.mark.parametrize(
    ("document", "operation"),
    [
        ({}, operation("remove", "/a")),
        ({}, operation("add", "/a/b", 1)),
        ({"a": None}, operation("add", "/a/b", 1)),
        ({"a": "text"}, operation("add", "/a/0", 1)),
        ({"a": [1]}, operation("add", "/a/2", 1)),
        ({"a": [1]}, operation("add", "/a/x", 1)),
        ({"a": [1]}, operation("add", "/a/" + "1" * 5000, 1)),
        ({"a": [1]}, operation("remove", "/a/-2")),
        ({"a": []}, operation("remove", "/a/0")),
        ({"a": [1]}, operation("replace", "/a/1", 1)),
        ({}, operation("replace", "", 1)),
        ({}, operation("add", "", {})),
        ({}, operation("move", "/b", **{"from": "/a"})),
        ({"a": 1}, operation("test", "/a", 2)),
        ({"a": 1}, operation("test", "/a", True)),
        ({"a": 1}, operation("test", "/a", 1.0)),
        ({"a": 1}, operation("bogus", "/a")),
        ({"a": 1}, {"path": "/a"}),
        ({"a": 1}, {"op": "remove"}),
        ({"a": 1}, operation("copy", "/b")),
    ],
)
def test_operation_that_does_not_fit_is_refused(
    document: Document, operation: dict[str, Any]
) -> None:
    before = deepcopy(document)
    with pytest.raises(JsonPatchError):
        apply_json_patch(document, [operation])
    assert document == before


@given(OBJECTS, st.text("ab", max_size=2), JSON)
def test_json_patch_leaves_document_and_patch_as_they_are(
    document: Document, key: str, value: Any
) -> None:
    before, patch = deepcopy(document), [operation("add", f"/{key}", value)]
    patched = apply_json_patch(document, [*patch, operation("add", f"/{key}", {"x": [1]})])
    assert patched[key] == {"x": [1]}
    assert (document, patch[0]["value"]) == (before, value)


def test_copies_may_not_grow_without_bounds() -> None:
    document: Document = {"a": ["x" * 1000]}
    doubling = [operation("copy", "/a/-", **{"from": "/a"})] * 13
    with pytest.raises(JsonPatchError, match=f"more than {MAX_COPIED_BYTES} bytes"):
        apply_json_patch(document, doubling)


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": [1]}, {"a": [{"b": None}, None]}, {"a": [{}, None]}),
        ({"a": {}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
    ],
)
def test_merge_patch(document: Document, patch: Document, result: Document) -> None:
    assert apply_merge_patch(document, patch) == result


@given(OBJECTS, OBJECTS)
def test_merge_patch_touches_what_it_names_and_nothing_else(
    document: Document, patch: Document
) -> None:
    before = deepcopy((document, patch))
    result = apply_merge_patch(document, patch)
    assert result.keys() == (document.keys() | patch.keys()) - {
        key for key, value in patch.items() if value is None
    }
    assert {key: result[key] for key in document.keys() - patch.keys()} == {
        key: document[key] for key in document.keys() - patch.keys()
    }
    assert (document, patch) == before


POD: Document = {
    "metadata": {"name": "a", "finalizers": ["x"]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}], "podIPs": []},
}


def patched(content_type: str, body: Any, document: Document = POD, resource: Any = PODS) -> Any:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return apply_patch_body(content_type, document, text, resource)


def test_lists_are_merged_strategically() -> None:
    change = {"status": {"conditions": [{"type": "New", "status": "False"}]}}
    conditions = patched(STRATEGIC_MERGE_PATCH, change)["status"]["conditions"]
    assert [condition["type"] for condition in conditions] == ["New", "Ready"]
    conditions = patched(MERGE_PATCH, change)["status"]["conditions"]
    assert [condition["type"] for condition in conditions] == ["New"]


@pytest.mark.parametrize("resource", [PODS, LEASES, NAMESPACES, CONFIG_MAPS, SERVICE_ACCOUNTS])
def test_metadata_of_every_resource_is_merged_strategically(resource: Any) -> None:
    change = {"metadata": {"finalizers": ["y"], "labels": {"a": "b"}}}
    metadata = patched(STRATEGIC_MERGE_PATCH, change, resource=resource)["metadata"]
    assert metadata == {"name": "a", "finalizers": ["y", "x"], "labels": {"a": "b"}}


def test_patch_type_may_have_parameters() -> None:
    assert patched(f"{MERGE_PATCH}; charset=utf-8", {"status": None}) == {
        "metadata": POD["metadata"]
    }


def test_null_changes_nothing() -> None:
    assert patched(STRATEGIC_MERGE_PATCH, b"null") == POD
    assert patched(JSON_PATCH, b"null") == POD


REMOVE_NOTHING = [operation("remove", "/status/nothing")]


@pytest.mark.parametrize(
    ("content_type", "body", "code", "reason"),
    [
        ("text/plain", {}, 415, "UnsupportedMediaType"),
        ("", {}, 415, "UnsupportedMediaType"),
        ("application/json", {}, 415, "UnsupportedMediaType"),
        (APPLY_PATCH, {}, 415, "UnsupportedMediaType"),
        (STRATEGIC_MERGE_PATCH, [], 400, "BadRequest"),
        (STRATEGIC_MERGE_PATCH, b"{", 400, "BadRequest"),
        (STRATEGIC_MERGE_PATCH, b"\xff", 400, "BadRequest"),
        (STRATEGIC_MERGE_PATCH, {"status": {"$retainKeys": "phase"}}, 400, "BadRequest"),
        (STRATEGIC_MERGE_PATCH, {"status": {"podIPs": [[1]]}}, 422, "Invalid"),
        (STRATEGIC_MERGE_PATCH, {"status": {"conditions": [{"status": "True"}]}}, 422, "Invalid"),
        (STRATEGIC_MERGE_PATCH, {"status": {"$patch": "bogus"}}, 422, "Invalid"),
        (MERGE_PATCH, [], 400, "BadRequest"),
        (MERGE_PATCH, b"null", 400, "BadRequest"),
        (MERGE_PATCH, "text", 400, "BadRequest"),
        (JSON_PATCH, {}, 400, "BadRequest"),
        (JSON_PATCH, [1], 400, "BadRequest"),
        (JSON_PATCH, [{"op": 1}], 400, "BadRequest"),
        (JSON_PATCH, [None], 422, "Invalid"),
        (JSON_PATCH, REMOVE_NOTHING, 422, "Invalid"),
        (JSON_PATCH, [operation("replace", "", [])], 422, "Invalid"),
        (JSON_PATCH, [operation("test", "/status", 1)] * 10_000, 422, "Invalid"),
        (JSON_PATCH, [operation("test", "/status", 1)] * 10_001, 413, "RequestEntityTooLarge"),
        (
            JSON_PATCH,
            [
                operation("add", "/data", [0] * 100_000),
                *[operation("move", "/data/-", **{"from": "/data/0"})] * 9_000,
            ],
            413,
            "RequestEntityTooLarge",
        ),
        (
            JSON_PATCH,
            [operation("add", "/data", [0] * 100_000), *[operation("remove", "/data/0")] * 9_000],
            413,
            "RequestEntityTooLarge",
        ),
    ],
)
def test_bad_patch_is_answered_as_the_real_server_does(
    content_type: str, body: Any, code: int, reason: str
) -> None:
    with pytest.raises(StatusError) as caught:
        patched(content_type, body)
    assert (caught.value.code, caught.value.reason) == (code, reason)
    assert caught.value.document.get("reason", "") == reason


@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC_MERGE_PATCH, JSON_PATCH])
def test_endless_nesting_is_refused(content_type: str) -> None:
    with pytest.raises(StatusError) as caught:
        patched(content_type, b'{"status":' * 100_000)
    assert caught.value.code in (400, 422)


def test_the_reason_why_a_patch_fails_is_a_cause() -> None:
    with pytest.raises(StatusError) as caught:
        patched(JSON_PATCH, REMOVE_NOTHING)
    (cause,) = caught.value.document["details"]["causes"]
    assert cause["message"] == "no value at '/status/nothing'"


def test_apply_is_refused_with_a_way_out() -> None:
    with pytest.raises(StatusError, match="client-side apply"):
        check_patch_type(APPLY_PATCH)
    check_patch_type(MERGE_PATCH)
