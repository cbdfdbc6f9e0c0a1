"""The quality-of-service class of a pod."""

import pytest

from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.qos import compute_pod_qos, get_pod_qos
from podstatus.kube.scalars.quantity import Quantity

Amounts = dict[str, str]
FULL = {"cpu": "1", "memory": "1Gi"}
RESPELLED = {"cpu": "1000m", "memory": "1024Mi"}


def of(requests: Amounts | None = None, limits: Amounts | None = None) -> ResourceRequirements:
    return ResourceRequirements(requests=_listed(requests), limits=_listed(limits))


def _listed(amounts: Amounts | None) -> dict[str, Quantity] | None:
    return {name: Quantity(amount) for name, amount in (amounts or {}).items()} or None


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param([], "BestEffort", id="no containers"),
        pytest.param([of()], "BestEffort", id="nothing asked for"),
        pytest.param([of({"cpu": "0"}, {"memory": "0"})], "BestEffort", id="zero is nothing"),
        pytest.param([of({"gpu": "1"}, {"gpu": "1"})], "BestEffort", id="gpus do not count"),
        pytest.param([of(FULL, FULL)], "Guaranteed", id="requests are limits"),
        pytest.param([of(FULL, RESPELLED)], "Guaranteed", id="by value"),
        pytest.param([of(FULL, FULL), of(RESPELLED, FULL)], "Guaranteed", id="throughout"),
        pytest.param([of(FULL, FULL), of()], "Burstable", id="not throughout"),
        pytest.param([of({"cpu": "1"}, {"cpu": "1"})], "Burstable", id="no memory"),
        pytest.param([of({"cpu": "1"}, FULL)], "Burstable", id="a limit alone"),
        pytest.param([of(FULL)], "Burstable", id="requests alone"),
        pytest.param([of(FULL, {**FULL, "cpu": "2"})], "Burstable", id="limits are more"),
    ],
)
def test_requests_and_limits_of_the_containers_make_the_class(
    containers: list[ResourceRequirements], expected: str
) -> None:
    with_resources = tuple(Container(resources=resources) for resources in containers)
    assert compute_pod_qos(PodSpec(containers=with_resources)) == expected
    assert (
        compute_pod_qos(PodSpec(containers=with_resources[:1], init_containers=with_resources[1:]))
        == expected
    )


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (of(), "BestEffort"),
        (of(FULL, FULL), "Guaranteed"),
        (of({"cpu": "1"}), "Burstable"),
        (of({"cpu": "1"}, {"cpu": "1"}), "Burstable"),
        (of(None, FULL), "Burstable"),
    ],
)
def test_resources_of_the_pod_itself_count_instead_of_its_containers(
    own: ResourceRequirements, expected: str
) -> None:
    containers = (Container(resources=of({"cpu": "5"}, FULL)),)
    assert compute_pod_qos(PodSpec(containers=containers, resources=own)) == expected


def test_a_class_once_given_is_kept() -> None:
    spec = PodSpec(containers=(Container(resources=of(FULL, FULL)),))
    assert get_pod_qos(Pod(spec=spec)) == "Guaranteed"
    assert get_pod_qos(Pod(spec=spec, status=PodStatus(qos_class="Burstable"))) == "Burstable"
