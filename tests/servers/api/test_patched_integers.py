"""What replaces, patches, binds or deletes an object must fit the Go types, too."""

import json
from typing import Any

import pytest

from tests.servers.api.refusals import handled, told, unmarshal
from tests.servers.pods import causes, created, pod, pods
from tests.support.processes.api_servers import JSON_PATCH, MERGE, STRATEGIC, Document, Server

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@pytest.mark.parametrize("subresource", ["", "status", "resize"])
def test_what_replaces_a_pod_must_fit(server: Server, namespace: str, subresource: str) -> None:
    before = created(server.client, pods(namespace), pod("a"))
    sent = {"metadata": {"name": "a"}, "status": {"observedGeneration": 2**63}}
    answer = server.client.replace(pods(namespace, "a", subresource), sent)
    assert told(answer) == handled(
        "Pod",
        "json: cannot unmarshal number 9223372036854775808 into Go struct field "
        "PodStatus.status.observedGeneration of type int64",
    )
    assert server.client.get(pods(namespace, "a"))[1] == before


def statuses(count: object) -> Document:
    container = {"name": "app", "image": "x", "imageID": "", "ready": True, "restartCount": count}
    return {"status": {"containerStatuses": [container]}}


@pytest.mark.parametrize("value", [2**31, 2**40, 2**70, 1.5, "5", True, [], {}])
@pytest.mark.parametrize("patch", [MERGE, JSON_PATCH])
def test_what_a_patch_leads_to_must_fit(
    server: Server, namespace: str, patch: str, value: object
) -> None:
    before = created(server.client, pods(namespace), pod("a"))
    sent: Any = statuses(value)
    if patch == JSON_PATCH:
        sent = [{"op": "add", "path": "/status", "value": sent["status"]}]
    code, answer = server.client.patch(pods(namespace, "a", "status"), sent, patch)
    assert (code, answer["reason"], causes((code, answer))) == (422, "Invalid", ["patch"])
    assert answer["message"].startswith(' "" is invalid: patch: Invalid value: "{')
    assert answer["message"].endswith(
        "into Go struct field ContainerStatus.status.containerStatuses.restartCount of type int32"
    )
    assert server.client.get(pods(namespace, "a"))[1] == before


@pytest.mark.parametrize("value", [1.5, "5", True, [], {}])
def test_what_a_strategic_patch_leads_to_must_fit(
    server: Server, namespace: str, value: object
) -> None:
    before = created(server.client, pods(namespace), pod("a"))
    code, answer = server.client.patch(pods(namespace, "a", "status"), statuses(value), STRATEGIC)
    assert (code, answer["reason"], causes((code, answer))) == (422, "Invalid", ["patch"])
    assert answer["message"].startswith(' "" is invalid: patch: Invalid value: "map[status:map[')
    if not server.is_real:  # which does not say where
        assert "ContainerStatus.status.containerStatuses.restartCount" in answer["message"]
    assert server.client.get(pods(namespace, "a"))[1] == before


@pytest.mark.parametrize("value", ["3", "3.0", "3e0", "30e-1"])
def test_a_strategic_patch_may_spell_an_integer_as_a_float(
    server: Server, namespace: str, value: str
) -> None:
    created(server.client, pods(namespace), pod("a"))
    sent = json.dumps(statuses("value")).replace('"value"', value)
    code, answer = server.client.patch(pods(namespace, "a", "status"), sent)
    assert code == 200, answer
    assert answer["status"]["containerStatuses"][0]["restartCount"] == 3


@pytest.mark.parametrize("value", [2**31, 2**40 + 7, 2**70])
def test_a_strategic_patch_beyond_the_type_is_refused_not_wrapped(
    server: Server, namespace: str, value: int
) -> None:
    """The real server stores another number: what is left in the low bits (decision 0045)."""
    created(server.client, pods(namespace), pod("a"))
    code, answer = server.client.patch(pods(namespace, "a", "status"), statuses(value), STRATEGIC)
    if server.is_real:
        assert code == 200 or "restartCount" in str(answer["details"]["causes"])
        return
    assert causes((code, answer)) == ["patch"]
    assert f"number {value} into Go struct field ContainerStatus.status" in answer["message"]


@pytest.mark.parametrize(
    ("options", "what", "field", "go_type"),
    [
        (
            {"gracePeriodSeconds": 2**63},
            "number 9223372036854775808",
            "DeleteOptions.gracePeriodSeconds",
            "int64",
        ),
        ({"gracePeriodSeconds": "5"}, "string", "DeleteOptions.gracePeriodSeconds", "int64"),
        ({"gracePeriodSeconds": 5.5}, "number 5.5", "DeleteOptions.gracePeriodSeconds", "int64"),
        ({"preconditions": {"uid": 5}}, "number", "Preconditions.preconditions.uid", "types.UID"),
        ({"preconditions": []}, "array", "DeleteOptions.preconditions", "v1.Preconditions"),
        ({"dryRun": "All"}, "string", "DeleteOptions.dryRun", "[]string"),
        (
            {"propagationPolicy": 5},
            "number",
            "DeleteOptions.propagationPolicy",
            "v1.DeletionPropagation",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_options_of_a_deletion_must_fit(
    server: Server, namespace: str, options: Document, what: str, field: str, go_type: str
) -> None:
    before = created(server.client, pods(namespace), pod("a"))
    answer = server.client.delete(pods(namespace, "a"), options)
    assert told(answer) == (400, unmarshal(what, field, go_type))
    assert server.client.get(pods(namespace, "a"))[1] == before


@pytest.mark.parametrize(
    ("path", "kind", "sent", "what", "field", "go_type"),
    [
        (
            "{pod}/binding",
            "Binding",
            {"metadata": {"name": "a", "generation": 2**63}, "target": {"name": "n"}},
            "number 9223372036854775808",
            "ObjectMeta.metadata.generation",
            "int64",
        ),
        (
            "{pod}/binding",
            "Binding",
            {"metadata": {"name": "a"}, "target": {"name": 5}},
            "number",
            "ObjectReference.target.name",
            "string",
        ),
        (
            TOKENS,
            "TokenReview",
            {"spec": {"token": 5}},
            "number",
            "TokenReviewSpec.spec.token",
            "string",
        ),
        (
            ACCESS,
            "SubjectAccessReview",
            {"spec": {"user": 5, "resourceAttributes": {}}},
            "number",
            "SubjectAccessReviewSpec.spec.user",
            "string",
        ),
        (
            ACCESS,
            "SubjectAccessReview",
            {"metadata": {"generation": "x"}},
            "string",
            "ObjectMeta.metadata.generation",
            "int64",
        ),
        (
            ACCESS,
            "SubjectAccessReview",
            {"spec": {"extra": {"a": [1]}}},
            "number",
            "SubjectAccessReviewSpec.spec.extra",
            "string",
        ),
        (
            ACCESS,
            "SubjectAccessReview",
            {"spec": {"extra": {"a": 1}}},
            "number",
            "SubjectAccessReviewSpec.spec.extra",
            "v1.ExtraValue",
        ),
    ],
    ids=lambda value: str(value)[-40:],
)
def test_bodies_that_are_not_stored_must_fit_too(
    server: Server,
    namespace: str,
    path: str,
    kind: str,
    sent: Document,
    what: str,
    field: str,
    go_type: str,
) -> None:
    created(server.client, pods(namespace), pod("a", node=""))
    answer = server.client.create(path.format(pod=pods(namespace, "a")), sent)
    assert told(answer) == handled(kind, unmarshal(what, field, go_type))


@pytest.mark.parametrize("query", ["limit", "timeoutSeconds"])
@pytest.mark.parametrize(
    "value", ["9223372036854775808", "x", "1.5", "1_000", "0x10", "%205", "1e3"]
)
def test_numbers_in_a_query_must_fit(
    server: Server, namespace: str, query: str, value: str
) -> None:
    code, answer = server.client.get(f"{pods(namespace)}?{query}={value}")
    assert (code, answer["reason"]) == (400, "BadRequest")
    why = "value out of range" if value.isdigit() else "invalid syntax"
    shown = value.replace("%20", " ")
    assert answer["message"] == f'strconv.ParseInt: parsing "{shown}": {why}'


def test_nulls_in_the_labels_of_a_binding_are_empty_texts(server: Server, namespace: str) -> None:
    created(server.client, pods(namespace), pod("a", node=""))
    meta = {"name": "a", "labels": {"a": None}, "annotations": {"b": None}}
    sent = {"metadata": meta, "target": {"name": "node-1"}}
    assert server.client.create(pods(namespace, "a", "binding"), sent)[0] == 201
    found = server.client.get(pods(namespace, "a"))[1]["metadata"]
    assert (found["labels"], found["annotations"]) == ({"a": ""}, {"b": ""})
