"""Changes of allocations return new maps."""

from podstatus.kube.encoding.codec import from_document, to_document
from podstatus.kube.objects.allocation import (
    PodResourceInfo,
    with_container_resources,
    with_pod_level_resources,
    with_resize_status,
    without_pods,
)
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.quantity import Quantity

U, V = PodUID("u"), PodUID("v")
ONE = ResourceRequirements(requests={"cpu": Quantity("1")})
TWO = ResourceRequirements(requests={"cpu": Quantity("2")})


def test_a_container_is_added_beside_the_others() -> None:
    before = {U: PodResourceInfo(container_resources={"a": ONE}, pod_level_resources=TWO)}
    after = with_container_resources(before, U, "b", TWO)
    expected = PodResourceInfo(container_resources={"a": ONE, "b": TWO}, pod_level_resources=TWO)
    assert after == {U: expected}
    assert before[U].container_resources == {"a": ONE}


def test_a_pod_is_known_from_its_first_word_on() -> None:
    assert with_container_resources({}, U, "a", ONE)[U].pod_level_resources is None
    assert with_pod_level_resources({}, U, None) == {U: PodResourceInfo()}


def test_the_pod_as_a_whole_is_replaced_alone() -> None:
    before = {U: PodResourceInfo(container_resources={"a": ONE}), V: PodResourceInfo()}
    after = with_pod_level_resources(before, U, TWO)
    expected = PodResourceInfo(container_resources={"a": ONE}, pod_level_resources=TWO)
    assert after == {U: expected, V: PodResourceInfo()}


def test_an_empty_resize_status_is_none() -> None:
    assert with_resize_status({U: "Deferred", V: "x"}, U, "") == {V: "x"}
    assert with_resize_status({U: "Deferred"}, U, "InProgress") == {U: "InProgress"}


def test_nothing_to_drop_leaves_the_map_as_it_is() -> None:
    entries = {U: 1}
    assert without_pods(entries, {V}) is entries
    assert without_pods(entries, {U, V}) == {}


def test_a_pods_resources_travel_under_upstreams_names() -> None:
    document = {"ContainerResources": {"a": {"requests": {"cpu": "1"}}}, "PodLevelResources": None}
    info = PodResourceInfo(container_resources={"a": ONE})
    assert to_document(info) == document
    assert from_document(document, PodResourceInfo) == info
