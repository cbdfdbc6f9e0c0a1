"""Event messages about resizes, from upstream's own test table."""

import pytest

from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.quantity import Quantity
from podstatus.workers.resize.decision import resize_message
from tests.workers.pods import a_pod, sidecar


def resources(
    requests: dict[str, str] | None = None, limits: dict[str, str] | None = None
) -> ResourceRequirements:
    made = [
        None if it is None else {name: Quantity(amount) for name, amount in it.items()}
        for it in (requests, limits)
    ]
    return ResourceRequirements(requests=made[0], limits=made[1])


ALL = {"memory": "100", "cpu": "0.1"}
A = Container(name="a", resources=resources(ALL, ALL))


@pytest.mark.parametrize(
    ("pod", "error", "words"),
    [
        (
            a_pod(A),
            "",
            (
                '{"containers":[{"name":"a","resources":{"limits":{"cpu":"100m","memory":"100"},'
                '"requests":{"cpu":"100m","memory":"100"}}}],"generation":7}'
            ),
        ),
        (
            a_pod("b", init=[sidecar("s", resources=resources({"cpu": "1"}))]),
            "",
            (
                '{"initContainers":[{"name":"s","resources":{"requests":{"cpu":"1"}}}],'
                '"containers":[{"name":"b","resources":{}}],"generation":7}'
            ),
        ),
        (
            a_pod("b"),
            'a "<b>" & c',
            (
                '{"containers":[{"name":"b","resources":{}}],"generation":7,'
                '"error":"a \\"\\u003cb\\u003e\\" \\u0026 c"}'
            ),
        ),
    ],
)
def test_who_is_to_have_what(pod: Pod, error: str, words: str) -> None:
    assert resize_message("Pod resize x", pod, 7, error) == f"Pod resize x: {words}"
