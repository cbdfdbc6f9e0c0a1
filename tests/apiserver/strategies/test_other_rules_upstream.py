"""Strategies other than that of pods, compared with recordings of upstream's.

Recorded as in `test_rules_upstream`, with the strategies of k8s.io/kubernetes v1.36.4. The taint
that admission gives to a new node is left out of the comparison, and so are the IP families of
Services, which upstream's storage sets. An update of a Service without its cluster IP is not among
the cases: that storage restores it before the strategy sees the object.
"""

import gzip
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podstatus.apiserver.strategies.base import Document, MalformedObjectError
from podstatus.apiserver.strategies.by_resource import STRATEGIES

RECORDED = Path(__file__).with_name("upstream-others.jsonl.gz")
CASES = [msgspec.json.decode(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]


@pytest.mark.parametrize("resource", sorted(set(STRATEGIES) - {"pods"}))
def test_objects_are_judged_as_by_upstream(resource: str) -> None:
    cases = [case for case in CASES if case["resource"] == resource]
    assert len(cases) > 20
    for case in cases:
        try:
            document, causes = judged(case)
        except MalformedObjectError:
            assert case.get("refused"), case["new"]
            continue
        assert not case.get("refused"), case["new"]
        assert causes == [tuple(cause) for cause in case["causes"]], case["new"]
        if not causes:
            assert without_admission(document) == without_admission(case["object"])


def judged(case: dict[str, Any]) -> tuple[Document, list[tuple[str, str, str]]]:
    original = deepcopy(case)
    strategy = STRATEGIES[case["resource"]]
    if case["op"] == "create":
        document = strategy.prepare_create(case["new"])
        causes = strategy.validate_create(document)
    else:
        subresource = "status" if case["op"] == "status" else ""
        document = strategy.prepare_update(strategy.decode(case["new"]), case["old"], subresource)
        causes = strategy.validate_update(document, case["old"], subresource)
    assert case == original, "documents are never changed"
    return document, sorted({(cause.reason, cause.field, cause.message) for cause in causes})


def without_admission(document: Document) -> Document:
    result: Document = deepcopy(document)
    spec = result.get("spec") or {}
    for allocated in ("ipFamilies", "ipFamilyPolicy"):
        spec.pop(allocated, None)
    taints = spec.pop("taints", None) or []
    left = [taint for taint in taints if taint["key"] != "node.kubernetes.io/not-ready"]
    if left:
        spec["taints"] = left
    return {key: value for key, value in result.items() if key not in ("spec", "status") or value}
