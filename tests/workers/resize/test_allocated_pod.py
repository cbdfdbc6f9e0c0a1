"""Pods with their allocated resources."""

from msgspec import structs

from podstatus.kube.objects.allocation import PodResourceInfo
from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.quantity import Quantity
from podstatus.workers.resize.allocated_pod import with_allocation, with_larger_requests
from tests.workers.pods import a_pod


def cpu(amount: str) -> ResourceRequirements:
    return ResourceRequirements(requests={"cpu": Quantity(amount)})


def asking(name: str, amount: str) -> Container:
    return Container(name=name, resources=cpu(amount))


def info(pod: str | None = None, **amounts: str) -> PodResourceInfo:
    return PodResourceInfo(
        container_resources={name: cpu(amount) for name, amount in amounts.items()},
        pod_level_resources=None if pod is None else cpu(pod),
    )


def amounts(pod: Pod) -> list[str]:
    """Requests of a pod's containers, and of the pod level if set."""
    containers = (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))
    own = [] if pod.spec.resources is None else [pod.spec.resources]
    return [(r.requests or {})["cpu"] for r in (*(c.resources for c in containers), *own)]


def as_a_whole(pod: Pod, amount: str) -> Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, resources=cpu(amount)))


POD = a_pod(asking("a", "2"), asking("b", "1"), init=[asking("i", "3")])


def test_a_pod_of_which_nothing_is_granted_stays_as_it_is() -> None:
    assert with_allocation(POD, None) is POD
    assert with_allocation(POD, PodResourceInfo()) is POD


def test_the_grant_counts_instead_of_the_request() -> None:
    pod = with_allocation(POD, info(a="1", i="500m", c="9"))
    assert amounts(pod) == ["500m", "1", "1"]
    assert amounts(POD) == ["3", "2", "1"]


def test_what_the_pod_as_a_whole_was_granted_counts_too() -> None:
    pod = as_a_whole(POD, "7")
    assert amounts(with_allocation(pod, info("6"))) == ["3", "2", "1", "6"]
    assert amounts(with_allocation(pod, info())) == ["3", "2", "1"]
    assert with_allocation(pod, info("7000m")) is pod


def test_the_same_amount_in_other_words_is_no_difference() -> None:
    assert with_allocation(POD, info(a="2000m", b="1", i="3")) is POD


def test_a_pod_without_containers_is_borne() -> None:
    pod = structs.replace(POD, spec=structs.replace(POD.spec, containers=None))
    assert with_allocation(pod, info(a="9")) is pod


def test_what_was_not_given_back_yet_counts() -> None:
    assert amounts(with_larger_requests(POD, info(a="4", b="500m", i="3"))) == ["3", "4", "1"]
    assert amounts(with_larger_requests(as_a_whole(POD, "5"), info("6"))) == ["3", "2", "1", "6"]
    assert with_larger_requests(POD, None) is POD
