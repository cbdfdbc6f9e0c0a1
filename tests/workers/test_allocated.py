"""A pod with the resources that the node has granted to it."""

from msgspec import structs

from podstatus.kube.containers import Container
from podstatus.kube.pod import PodUID
from podstatus.kube.quantity import Quantity
from podstatus.kube.resources import ResourceRequirements
from podstatus.workers.allocated import with_allocation
from tests.workers.pods import a_pod


def cpu(amount: str) -> ResourceRequirements:
    return ResourceRequirements(requests={"cpu": Quantity(amount)})


def asking(name: str, amount: str) -> Container:
    return Container(name=name, resources=cpu(amount))


POD = a_pod(asking("a", "2"), asking("b", "1"), init=[asking("i", "3")])


def test_a_pod_of_which_nothing_is_granted_stays_as_it_is() -> None:
    assert with_allocation(POD, lambda _uid, _name: None) is POD


def test_the_grant_counts_instead_of_the_request() -> None:
    granted = {("u", "a"): cpu("1"), ("u", "i"): cpu("500m"), ("v", "b"): cpu("9")}
    pod = with_allocation(POD, lambda uid, name: granted.get((uid, name)))
    assert [c.resources for c in pod.spec.containers or ()] == [cpu("1"), cpu("1")]
    assert [c.resources for c in pod.spec.init_containers or ()] == [cpu("500m")]
    assert POD.spec.containers == (asking("a", "2"), asking("b", "1"))


def test_the_same_amount_in_other_words_is_no_difference() -> None:
    granted = {"a": cpu("2000m"), "b": cpu("1"), "i": cpu("3")}
    assert with_allocation(POD, lambda _uid, name: granted.get(name)) is POD


def test_a_pod_without_containers_is_borne() -> None:
    pod = structs.replace(POD, spec=structs.replace(POD.spec, containers=None))
    asked: list[tuple[PodUID, str]] = []

    def look_up(uid: PodUID, name: str) -> None:
        asked.append((uid, name))

    assert with_allocation(pod, look_up) is pod
    assert asked == [("u", "i")]
