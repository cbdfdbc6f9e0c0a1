"""Validation of pods with long lists takes linear time.

The bound detects quadratic growth, not a slow machine: this took 20 s.
"""

import time

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.validation.pod_spec import validate_pod

SECONDS = 8.0
LENGTH = 40_000


def test_claims_of_a_container_are_compared_in_linear_time() -> None:
    names = [f"c{number}" for number in range(LENGTH)]
    container = {
        "name": "a",
        "image": "i",
        "imagePullPolicy": "Always",
        "terminationMessagePolicy": "File",
        "resources": {"claims": [{"name": name} for name in names]},
    }
    spec = {
        "restartPolicy": "Always",
        "dnsPolicy": "Default",
        "containers": [container],
        "resourceClaims": [{"name": name, "resourceClaimName": name} for name in names],
    }
    pod = from_document({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec}, Pod)
    began = time.process_time()
    assert validate_pod(pod) == []
    assert time.process_time() - began < SECONDS
