"""Parts that a patch leaves alone are not decoded again, with the same result."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from podstatus.apiserver.request.field_validation import check_patched
from podstatus.apiserver.resources import PODS
from podstatus.apiserver.strategies.base import Document, MalformedObjectError
from podstatus.apiserver.strategies.by_resource import STRATEGIES

RULES = STRATEGIES["pods"]
_UPSTREAM = Path(__file__).parent / "upstream-pods.jsonl.gz"

STATUSES: list[Document] = [
    {},
    {"phase": "Running", "podIP": "10.0.0.1", "unknown": 1},
    {"podIPs": [{"ip": "10.0.0.1"}], "conditions": None},
    {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": None}]},
    {"startTime": "2024-01-01T00:00:00.5Z"},
]


def stored(**metadata: Any) -> Document:
    spec = {"containers": [{"name": "app", "image": "app:1"}], "nodeName": "n"}
    return RULES.prepare_create({"metadata": {"name": "a"} | metadata, "spec": spec})


def specs() -> list[Document]:
    with gzip.open(_UPSTREAM, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["new"].get("spec") or {} for line in lines]


@pytest.mark.parametrize("status", STATUSES)
def test_a_pod_with_a_patched_status_is_read_like_any_other(status: Document) -> None:
    old = stored()
    new = old | {"status": status, "metadata": old["metadata"] | {"labels": {"a": "b"}}}
    assert RULES.decode_patched(new, old) == RULES.decode(new)
    for subresource in ("", "status"):
        after = RULES.prepare_update(RULES.decode_patched(new, old), old, subresource)
        assert after == RULES.prepare_update(RULES.decode(new), old, subresource)


def test_a_spec_that_was_read_stays_as_it_is() -> None:
    read = 0
    for spec in specs():
        try:
            once = RULES.decode({"metadata": {}, "spec": spec})
        except MalformedObjectError:
            continue
        read += 1
        assert RULES.decode(once) == once
    assert read


@pytest.mark.parametrize(
    "part", [{"spec": {"containers": 1}}, {"status": {"phase": 1}}, {"metadata": {"labels": 1}}]
)
def test_a_patch_that_leads_to_wrong_types_is_refused(part: Document) -> None:
    old = stored()
    with pytest.raises(MalformedObjectError):
        RULES.decode_patched(old | part, old)


def test_a_patched_spec_gets_its_defaults() -> None:
    old = stored()
    new = old | {"spec": old["spec"] | {"dnsPolicy": None}}
    assert RULES.decode_patched(new, old)["spec"]["dnsPolicy"] == "ClusterFirst"


def test_unknown_fields_are_reported_where_the_patch_applies() -> None:
    old = stored() | {"unknown": 1, "empty": None}
    new = old | {"status": {"fase": "x"}, "this": None}
    assert check_patched(new, old, PODS, "Warn") == [
        'unknown field "status.fase"',
        'unknown field "this"',
    ]
