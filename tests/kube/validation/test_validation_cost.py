"""Validation takes linear time for long lists, and bounded time for large quantities.

The bound detects quadratic growth, not a slow machine: this took 20 s.
"""

import time
from typing import Any

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.validation.pod_spec import validate_pod

SECONDS = 8.0
LENGTH = 40_000


def pod_with_resources(resources: dict[str, Any], **spec: Any) -> Pod:
    container = {
        "name": "a",
        "image": "i",
        "imagePullPolicy": "Always",
        "terminationMessagePolicy": "File",
        "resources": resources,
    }
    spec |= {"restartPolicy": "Always", "dnsPolicy": "Default", "containers": [container]}
    return from_document({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec}, Pod)


def test_claims_of_a_container_are_compared_in_linear_time() -> None:
    names = [f"c{number}" for number in range(LENGTH)]
    pod = pod_with_resources(
        {"claims": [{"name": name} for name in names]},
        resourceClaims=[{"name": name, "resourceClaimName": name} for name in names],
    )
    began = time.process_time()
    assert validate_pod(pod) == []
    assert time.process_time() - began < SECONDS


def test_huge_pages_with_a_huge_exponent_are_validated_at_once() -> None:
    amounts = {"hugepages-2Mi": "1e9000000", "cpu": "1"}
    pod = pod_with_resources({"limits": amounts, "requests": amounts})
    began = time.process_time()
    assert validate_pod(pod) == []
    assert time.process_time() - began < SECONDS
