"""Whatever is put in: a clear error or upstream's behaviour, never a half-written cache."""

from typing import Any, cast

import pytest
from msgspec import structs

from podstatus import Pod, PodCondition, PodManager, PodStatus, StatusManager
from podstatus.kube.encoding.codec import to_document
from podstatus.kube.encoding.frozen_copy import FieldTypeError
from podstatus.kube.objects.pod_status import ContainerStatus
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.testing.builders import make_pod, make_status, running
from podstatus.testing.fakes import FakeDeletionSafety, RecordingNotifier
from podstatus.testing.in_memory_pod_api import InMemoryPodApi


class Node:
    def __init__(self) -> None:
        self.pod = make_pod()
        self.directory = PodManager([self.pod])
        self.api = InMemoryPodApi(self.pod, watcher=self.directory)
        self.manager = StatusManager(self.api, self.directory, FakeDeletionSafety())
        self.notifier = RecordingNotifier()
        self.manager.add_notifier(self.notifier)

    def refuses(self, error: type[Exception], match: str, pod: Any, status: Any) -> None:
        before = self.manager.entries()
        with pytest.raises(error, match=match):
            self.manager.set_pod_status(pod, status)
        assert self.manager.entries() == before
        assert self.notifier.calls == []
        assert not self.manager.pop_changes()


@pytest.fixture
def node() -> Node:
    return Node()


def test_a_pod_without_uid_is_refused(node: Node) -> None:
    nameless = structs.replace(node.pod, metadata=structs.replace(node.pod.metadata, uid=""))
    node.refuses(ValueError, "default/pod has no UID", nameless, PodStatus())
    with pytest.raises(ValueError, match="has no UID"):
        node.manager.terminate_pod(nameless)
    assert node.manager.entries() == {}


@pytest.mark.parametrize("status", [None, {"phase": "Running"}, "Running"])
def test_what_is_no_status_is_refused(node: Node, status: object) -> None:
    node.refuses(TypeError, "expected a PodStatus", node.pod, status)


@pytest.mark.parametrize("pod", [None, {"metadata": {"uid": "u"}}])
def test_what_is_no_pod_is_refused(node: Node, pod: object) -> None:
    node.refuses(TypeError, "expected a Pod", pod, PodStatus())


async def test_an_unknown_phase_is_cached_and_sent_as_it_is(node: Node) -> None:
    node.manager.set_pod_status(node.pod, make_status("Dreaming", running("app")))
    await node.manager.sync_batch(full=False)
    stored = node.api.pod("default", "pod")
    assert stored is not None
    assert stored.status.phase == "Dreaming"


def test_a_duplicate_condition_is_kept_and_only_the_first_is_stamped(node: Node) -> None:
    twice = PodStatus(conditions=(PodCondition(type="Ready", status="True"),) * 2, phase="Running")
    status, changed = node.manager.set_pod_status(node.pod, twice)
    assert changed
    first, second = status.conditions or ()
    assert first.last_transition_time
    assert not second.last_transition_time


def test_an_unreadable_quantity_that_was_smuggled_in_is_refused(node: Node) -> None:
    amounts: Any = {"cpu": "lots"}
    container = ContainerStatus(name="app", allocated_resources=amounts)
    node.refuses(QuantityError, "'lots'", node.pod, PodStatus(container_statuses=(container,)))


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({"phase": 7}, "^phase: expected str, got int"),
        ({"conditions": [{"type": "Ready"}]}, r"^conditions\[0\]: expected PodCondition, got dict"),
        (
            {"container_statuses": (ContainerStatus(name="app", ready=cast(bool, "no")),)},
            r"^container_statuses\[0\].ready: expected bool, got str",
        ),
    ],
)
def test_what_does_not_belong_into_a_status_is_refused_with_its_place(
    node: Node, status: dict[str, Any], message: str
) -> None:
    node.refuses(FieldTypeError, message, node.pod, PodStatus(**status))


def test_the_directory_refuses_what_is_no_pod() -> None:
    directory = PodManager()
    with pytest.raises(TypeError, match="expected a Pod, got dict"):
        directory.update_pod(cast(Pod, {}))
    assert directory.pods() == []


def test_what_the_manager_hands_out_cannot_be_changed(node: Node) -> None:
    container = ContainerStatus(name="app", allocated_resources={"cpu": Quantity("1")})
    node.manager.set_pod_status(node.pod, PodStatus(container_statuses=(container,)))
    cached = node.manager.pod_status(node.pod.uid)
    assert cached is not None
    (handed_out,) = cached.container_statuses or ()
    with pytest.raises(TypeError, match="frozen"):
        (handed_out.allocated_resources or {})["cpu"] = Quantity("2")


def test_a_status_that_is_changed_afterwards_does_not_change_the_cache(node: Node) -> None:
    amounts = {"cpu": Quantity("1")}
    conditions: Any = [PodCondition(type="Ready", status="True")]
    container = ContainerStatus(name="app", allocated_resources=amounts)
    status = PodStatus(conditions=conditions, container_statuses=(container,))
    cached, _ = node.manager.set_pod_status(node.pod, status)
    amounts["cpu"] = Quantity("2")
    conditions.clear()
    assert node.manager.pod_status(node.pod.uid) == cached
    assert to_document(cached)["containerStatuses"][0]["allocatedResources"] == {"cpu": "1"}
    assert len(cached.conditions or ()) == 1
