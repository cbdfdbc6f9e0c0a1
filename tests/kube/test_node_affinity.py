"""Node selector and required affinity: a row for each operator."""

from typing import Any

import pytest

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.node_selection import matches_node
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod_spec import PodSpec

NODE = from_document(
    {"metadata": {"name": "machine1", "labels": {"zone": "a", "cores": "8", "odd": "8x"}}}, Node
)


def requirement(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def affinity(*terms: dict[str, Any]) -> PodSpec:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return from_document({"affinity": {"nodeAffinity": required}}, PodSpec)


LABELS = [
    (("zone", "In", "b", "a"), True),
    (("zone", "In", "b"), False),
    (("zone", "In"), False),
    (("none", "In", "a"), False),
    (("zone", "NotIn", "b"), True),
    (("zone", "NotIn", "a", "b"), False),
    (("none", "NotIn", "a"), True),
    (("none", "NotIn"), False),
    (("zone", "Exists"), True),
    (("none", "Exists"), False),
    (("zone", "Exists", "a"), False),
    (("none", "DoesNotExist"), True),
    (("zone", "DoesNotExist"), False),
    (("none", "DoesNotExist", "a"), False),
    (("cores", "Gt", "7"), True),
    (("cores", "Gt", "8"), False),
    (("cores", "Lt", "9"), True),
    (("cores", "Lt", "8"), False),
    (("cores", "Gt", "-1"), True),
    (("cores", "Gt", "7", "6"), False),
    (("cores", "Gt", "7.5"), False),
    (("cores", "Gt", " 7"), False),
    (("cores", "Gt", "007"), True),
    (("cores", "Lt", str(2**63 - 1)), True),
    (("cores", "Lt", str(2**63)), False),
    (("cores", "Gt", str(-(2**63))), True),
    (("cores", "Gt", str(-(2**63) - 1)), False),
    (("odd", "Gt", "7"), False),
    (("none", "Lt", "9"), False),
    (("zone", "Like", "a"), False),
]


@pytest.mark.parametrize(("row", "expected"), LABELS, ids=[" ".join(row) for row, _ in LABELS])
def test_requirements_on_labels(row: tuple[str, ...], expected: bool) -> None:
    spec = affinity({"matchExpressions": [requirement(*row)]})
    assert matches_node(spec, NODE.metadata.name, NODE.metadata.labels or {}) is expected


FIELDS = [
    (("metadata.name", "In", "machine1"), True),
    (("metadata.name", "In", "machine2"), False),
    (("metadata.name", "In", "machine1", "machine2"), False),
    (("metadata.name", "NotIn", "machine2"), True),
    (("metadata.name", "NotIn", "machine1"), False),
    (("metadata.name", "Exists"), False),
    (("metadata.uid", "In", "machine1"), False),
    (("metadata.uid", "NotIn", "machine1"), True),
]


@pytest.mark.parametrize(("row", "expected"), FIELDS, ids=[" ".join(row) for row, _ in FIELDS])
def test_requirements_on_fields(row: tuple[str, ...], expected: bool) -> None:
    spec = affinity({"matchFields": [requirement(*row)]})
    assert matches_node(spec, NODE.metadata.name, NODE.metadata.labels or {}) is expected


HOLDS, FAILS = requirement("zone", "In", "a"), requirement("zone", "In", "b")
HERE = requirement("metadata.name", "In", "machine1")
TERMS = [
    ("all of a term", [{"matchExpressions": [HOLDS, FAILS]}], False),
    ("fields too", [{"matchExpressions": [FAILS], "matchFields": [HERE]}], False),
    ("both hold", [{"matchExpressions": [HOLDS], "matchFields": [HERE]}], True),
    ("one of the terms", [{"matchExpressions": [FAILS]}, {"matchExpressions": [HOLDS]}], True),
    ("an empty term selects nothing", [{}], False),
    ("no term selects nothing", [], False),
]


@pytest.mark.parametrize(("what", "terms", "expected"), TERMS)
def test_terms(what: str, terms: list[dict[str, Any]], expected: bool) -> None:
    assert (
        matches_node(affinity(*terms), NODE.metadata.name, NODE.metadata.labels or {}) is expected
    ), what


def test_the_node_selector_has_to_hold_as_well() -> None:
    assert matches_node(
        PodSpec(node_selector={"zone": "a"}), NODE.metadata.name, NODE.metadata.labels or {}
    )
    assert not matches_node(
        PodSpec(node_selector={"zone": "a", "cores": "4"}),
        NODE.metadata.name,
        NODE.metadata.labels or {},
    )
    both = from_document(
        {
            "nodeSelector": {"zone": "b"},
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [HOLDS]}]
                    }
                }
            },
        },
        PodSpec,
    )
    assert not matches_node(both, NODE.metadata.name, NODE.metadata.labels or {})


def test_preferences_do_not_matter() -> None:
    preferred = [{"weight": 1, "preference": {"matchExpressions": [FAILS]}}]
    spec = from_document(
        {
            "affinity": {
                "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
            }
        },
        PodSpec,
    )
    assert matches_node(spec, NODE.metadata.name, NODE.metadata.labels or {})
    assert matches_node(PodSpec(), NODE.metadata.name, NODE.metadata.labels or {})


@pytest.mark.parametrize("digit", ["9", "0"])
def test_a_number_of_any_length_is_read(digit: str) -> None:
    spec = affinity({"matchExpressions": [requirement("cores", "Gt", digit * 5000)]})
    assert matches_node(spec, NODE.metadata.name, NODE.metadata.labels or {}) is (digit == "0")
