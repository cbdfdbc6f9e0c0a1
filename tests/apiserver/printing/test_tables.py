import json

import pytest

from podstatus.apiserver.handlers.responses import ResponseRenderer
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.messages import HttpRequest
from podstatus.apiserver.http.negotiation import MediaTypeOptions, negotiate
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.printing.table import (
    parse_include_object,
    partial_list,
    table_document,
)
from podstatus.apiserver.resources import LEASES, PODS, ResourceInfo
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.scalars.time import Time
from podstatus.testing.clock import FakeClock
from tests.apiserver.recorded import family

NOW = Time.parse("2024-05-01T12:00:00Z")
KUBECTL = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,"
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
LEASE: Document = {
    "metadata": {"name": "n1", "resourceVersion": "7", "creationTimestamp": "2024-05-01T11:55:30Z"},
    "spec": {"holderIdentity": "me"},
}


def test_columns_are_called_as_in_a_real_table() -> None:
    table = table_document(PODS, [], NOW, list_metadata={"resourceVersion": "5"})
    recorded = family("table")[0]["expected"][-1]["body"]["columns"]
    assert [column["name"] for column in table["columnDefinitions"]] == recorded
    assert [column["priority"] for column in table["columnDefinitions"]] == [0] * 5 + [1] * 4
    assert table["columnDefinitions"][0].keys() == {
        "name",
        "type",
        "format",
        "description",
        "priority",
    }
    assert table["rows"] == []
    assert table["metadata"] == {"resourceVersion": "5"}


def test_table_of_one_object_has_its_version_and_metadata() -> None:
    table = table_document(LEASES, [LEASE], NOW)
    assert table["metadata"] == {"resourceVersion": "7"}
    assert table["rows"] == [
        {
            "cells": ["n1", "me", "4m30s"],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": LEASE["metadata"],
            },
        }
    ]


def test_table_is_of_the_version_that_the_client_accepts() -> None:
    beta = "meta.k8s.io/v1beta1"
    accept = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
    request = HttpRequest(method="GET", path="/", query={}, accept=accept)
    target = ResourcePath(resource=LEASES, namespace="x", name="n1")
    table = json.loads(ResponseRenderer(FakeClock()).document(request, target, LEASE).body)
    assert (table["kind"], table["apiVersion"]) == ("Table", beta)
    assert [row["object"]["apiVersion"] for row in table["rows"]] == [beta]


def test_table_holds_as_much_of_the_object_as_is_wanted() -> None:
    (row,) = table_document(LEASES, [LEASE], NOW, include_object="Object")["rows"]
    assert row["object"] == LEASE | {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1"}
    (row,) = table_document(LEASES, [LEASE], NOW, include_object="None")["rows"]
    assert row["object"] is None
    assert parse_include_object("") == "Metadata"
    assert parse_include_object("None") == "None"
    with pytest.raises(StatusError, match="must be 'Metadata', 'Object', 'None', or empty"):
        parse_include_object("All")


def test_further_events_of_a_watch_have_no_headers() -> None:
    assert table_document(LEASES, [LEASE], NOW, headers=False)["columnDefinitions"] is None


def test_row_of_a_pod_that_ended_says_so() -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": []}, "status": {"phase": "Failed"}}
    (row,) = table_document(PODS, [pod], NOW)["rows"]
    assert row["conditions"] == [
        {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}
    ]
    (row,) = table_document(PODS, [pod | {"status": {"phase": "Running"}}], NOW)["rows"]
    assert "conditions" not in row


def test_unknown_resource_shows_name_and_creation() -> None:
    widgets = ResourceInfo(plural="widgets", kind="Widget")
    table = table_document(widgets, [LEASE, {"metadata": {"name": "x"}}], NOW, list_metadata={})
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Created At"]
    cells = [row["cells"] for row in table["rows"]]
    assert cells == [["n1", "2024-05-01T11:55:30Z"], ["x", "0001-01-01T00:00:00Z"]]


def test_list_of_metadata_leaves_the_rest_out() -> None:
    listed = partial_list([LEASE], {"resourceVersion": "9"})
    assert listed["kind"] == "PartialObjectMetadataList"
    assert listed["metadata"] == {"resourceVersion": "9"}
    assert [item["metadata"] for item in listed["items"]] == [LEASE["metadata"]]
    assert "spec" not in listed["items"][0]


V1 = "meta.k8s.io/v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "answer"),
    [
        ("", MediaTypeOptions()),
        ("*/*", MediaTypeOptions()),
        ("*", MediaTypeOptions()),
        ("application/*", MediaTypeOptions()),
        ("application/json", MediaTypeOptions()),
        ("application/json;stream=watch", MediaTypeOptions()),
        ("application/json; charset=utf-8", MediaTypeOptions()),
        (KUBECTL, MediaTypeOptions("Table", V1)),
        ("application/json; as=Table; g=meta.k8s.io; v=v1", MediaTypeOptions("Table", V1)),
        (
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
            MediaTypeOptions("Table", "meta.k8s.io/v1beta1"),
        ),
        (f"application/json;q=0.9,{TABLE};q=0.8", MediaTypeOptions()),
        (f"application/json;q=0.8,{TABLE};q=0.9", MediaTypeOptions("Table", V1)),
        (f"*/*,{TABLE}", MediaTypeOptions("Table", V1)),
        ("application/json;as=Table;v=v2;g=meta.k8s.io,application/json", MediaTypeOptions()),
        ("application/json;as=Chart;v=v1;g=meta.k8s.io,*/*", MediaTypeOptions()),
        ("application/vnd.kubernetes.protobuf,application/json", MediaTypeOptions()),
        (
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
            ),
            MediaTypeOptions("PartialObjectMetadata", V1),
        ),
        (
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            MediaTypeOptions("PartialObjectMetadataList", V1),
        ),
    ],
)
def test_client_is_answered_in_the_form_it_prefers(accept: str, answer: MediaTypeOptions) -> None:
    assert negotiate(accept) == answer


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "application/",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Table",
        "application/json;stream=other",
    ],
)
def test_form_that_we_do_not_have_is_not_acceptable(accept: str) -> None:
    with pytest.raises(StatusError, match="only the following media types are accepted") as caught:
        negotiate(accept)
    assert (caught.value.code, caught.value.reason) == (406, "NotAcceptable")
