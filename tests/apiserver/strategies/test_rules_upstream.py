"""The pod strategy compared with recordings of upstream's: every cause and resulting pod.

Recorded by calling `rest.BeforeCreate` and `rest.BeforeUpdate` with the strategies of
k8s.io/kubernetes v1.36.4, pkg/registry/core/pod, on made-up pods full of mistakes. What admission
adds to a pod is left out of the comparison; so are values that upstream prints as Go structs.
"""

import gzip
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podstatus.apiserver.strategies.base import Document, roundtrip
from podstatus.apiserver.strategies.by_resource import STRATEGIES
from podstatus.kube.objects.pod import Pod

RECORDED = Path(__file__).with_name("upstream-pods.jsonl.gz")
CASES = [msgspec.json.decode(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
SUBRESOURCES = {"update": "", "status": "status", "resize": "resize"}
PODS = STRATEGIES["pods"]


@pytest.mark.parametrize("op", ["create", "update", "status", "resize"])
def test_pods_are_judged_as_by_upstream(op: str) -> None:
    cases = [case for case in CASES if case["op"] == op]
    assert len(cases) > 50
    for case in cases:
        document, causes = judged(case)
        assert causes == [tuple(cause) for cause in case["causes"]], case["new"]
        if not causes:
            assert without_admission(document) == case["pod"]


def judged(case: dict[str, Any]) -> tuple[Document, list[tuple[str, str, str]]]:
    original = deepcopy(case)
    if case["op"] == "create":
        document = PODS.prepare_create(case["new"])
        causes = PODS.validate_create(document)
    else:
        subresource = SUBRESOURCES[case["op"]]
        document = PODS.prepare_update(PODS.decode(case["new"]), case["old"], subresource)
        causes = PODS.validate_update(document, case["old"], subresource)
    assert case == original, "documents are never changed"
    return document, sorted(
        {cause_key(cause.reason, cause.field, cause.message) for cause in causes}
    )


def cause_key(reason: str, field: str, message: str) -> tuple[str, str, str]:
    printed_as_go_struct = field.endswith("securityContext")
    return reason, field, "" if printed_as_go_struct else message.split("\n", maxsplit=1)[0]


def without_admission(document: Document) -> Document:
    pod = roundtrip(document, Pod)
    for key in ("kind", "apiVersion"):
        pod.pop(key)
    pod["metadata"].pop("creationTimestamp", None)
    spec = pod["spec"]
    for key in ("priority", "preemptionPolicy"):
        spec.pop(key, None)
    spec["tolerations"] = [
        toleration
        for toleration in spec.get("tolerations") or []
        if not toleration.get("key", "").startswith("node.kubernetes.io/")
    ]
    return pod
