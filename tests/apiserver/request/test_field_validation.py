"""Unknown and duplicate fields are reported in kube-apiserver's words."""

import json
from typing import Any

import pytest

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.request.field_validation import (
    check_body,
    check_directive,
    check_patched,
    strict_document_errors,
    strict_errors,
    warning_headers,
)
from podstatus.apiserver.resources import CONFIG_MAPS, LEASES, NODES, PODS, ResourceInfo

KNOWN: list[tuple[ResourceInfo, dict[str, Any]]] = [
    (PODS, {"kind": "Pod", "apiVersion": "v1", "metadata": {"labels": {"any": "thing"}}}),
    (PODS, {"metadata": {"managedFields": [{"fieldsV1": {"f:x": {".": {}}}}]}}),
    (PODS, {"spec": {"containers": [{"resources": {"limits": {"example.com/x": 1}}}]}}),
    (PODS, {"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": "http"}}}]}}),
    (PODS, {"spec": None}),
    (PODS, {"spec": {"containers": "no list", "tolerations": [None, 1]}}),
    (NODES, {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}}),
    (CONFIG_MAPS, {"data": {"a": "b"}, "binaryData": {"c": "ZA=="}}),
    (LEASES, {"spec": {"renewTime": "2024-01-01T00:00:00.000000Z"}}),
]


@pytest.mark.parametrize(("resource", "document"), KNOWN)
def test_known_fields_are_no_errors(resource: ResourceInfo, document: dict[str, Any]) -> None:
    assert strict_document_errors(document, resource) == []
    assert strict_errors(json.dumps(document).encode(), resource) == []


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        ({"specs": {}}, ["specs"]),
        ({"metadata": {"Name": "x"}}, ["metadata.Name"]),
        ({"spec": {"containers": [{}, {"imag": "x"}]}}, ["spec.containers[1].imag"]),
        ({"spec": {"b": 1, "a": {"deep": 2}}, "c": 3}, ["spec.b", "spec.a", "c"]),
        (
            {"spec": {"containers": [{"env": [{"valueFrom": {"x": {}}}]}]}},
            ["spec.containers[0].env[0].valueFrom.x"],
        ),
    ],
)
def test_unknown_fields_are_reported_with_their_path(
    document: dict[str, Any], paths: list[str]
) -> None:
    errors = [f'unknown field "{path}"' for path in paths]
    assert strict_document_errors(document, PODS) == errors
    assert strict_errors(json.dumps(document).encode(), PODS) == errors


def test_duplicate_fields_are_reported() -> None:
    # The response of kube-apiserver v1.36.4 to this body.
    body = b"""{"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "probe", "name": "p2", "labels": {"a": "1", "a": "2"}},
        "spec": {"containers": [{"name": "a", "image": "b", "name": "c"}], "zz": 1}}"""
    assert strict_errors(body, PODS) == [
        'duplicate field "metadata.name"',
        'duplicate field "metadata.labels.a"',
        'duplicate field "spec.containers[0].name"',
        'unknown field "spec.zz"',
    ]


def test_warnings_are_quoted() -> None:
    assert warning_headers(['unknown field "a"', "b"]) == {
        "Warning": '299 - "unknown field \\"a\\"", 299 - "b"'
    }
    assert warning_headers([]) == {}


@pytest.mark.parametrize(
    ("directive", "warnings"), [("Ignore", []), ("Warn", ['unknown field "a"'])]
)
def test_only_strict_refuses(directive: str, warnings: list[str]) -> None:
    assert check_body(b'{"a": 1}', PODS, directive) == warnings
    assert check_patched({"a": 1}, {}, PODS, directive) == warnings


def test_strict_refuses_bodies_and_patches_with_all_errors() -> None:
    with pytest.raises(StatusError) as refused:
        check_body(b'{"a": 1, "b": 2}', PODS, "Strict")
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")
    assert refused.value.message == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
        'unknown field "a", unknown field "b"'
    )
    with pytest.raises(StatusError) as refused:
        check_patched({"a": 1}, {}, PODS, "Strict")
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert refused.value.message == (
        ' "" is invalid: patch: Invalid value: "{\\"a\\":1}": '
        'strict decoding error: unknown field "a"'
    )


def test_what_was_stored_before_is_not_held_against_a_patch() -> None:
    assert check_patched({"a": 2}, {"a": 1}, PODS, "Strict") == []


@pytest.mark.parametrize(
    ("value", "meant"), [("", "Warn"), ("Strict", "Strict"), ("Ignore", "Ignore"), ("Warn", "Warn")]
)
def test_without_a_directive_it_is_a_warning(value: str, meant: str) -> None:
    assert check_directive(value, "CreateOptions") == meant


def test_an_unknown_directive_is_refused() -> None:
    with pytest.raises(StatusError) as refused:
        check_directive("strict", "PatchOptions")
    assert refused.value.code == 422
    assert refused.value.message == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "strict": '
        'supported values: "", "Ignore", "Strict", "Warn"'
    )


def test_an_object_that_is_nested_too_deeply_is_refused() -> None:
    deep = '{"metadata": {"labels": ' + '{"a": ' * 5000 + "1" + "}" * 5000 + "}}"
    with pytest.raises(StatusError, match="nested too deeply"):
        strict_errors(deep.encode(), PODS)
    nested: dict[str, Any] = {}
    for _ in range(5000):
        nested = {"a": nested}
    with pytest.raises(StatusError, match="nested too deeply"):
        strict_document_errors({"metadata": {"labels": nested}}, PODS)


def test_numbers_of_any_length_are_passed_over() -> None:
    assert strict_errors(b'{"spec": {"priority": 1' + b"0" * 5000 + b"}}", PODS) == []
