"""Names, UIDs, versions, preconditions, finalizers and deletion, with the pod strategy."""

from typing import Any

import pytest
from msgspec import structs

from podstatus.apiserver.generic_registry import Registry
from podstatus.apiserver.handlers.list import ListHandler
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.messages import HttpRequest
from podstatus.apiserver.storage.store import Store, StoreChange
from podstatus.apiserver.storage.watch_cache import WatchCache
from podstatus.apiserver.strategies.base import Document
from podstatus.apiserver.strategies.by_resource import STRATEGIES, selectable_fields
from podstatus.kube.objects.cluster import DeleteOptions, Preconditions
from podstatus.testing.clock import FakeClock
from tests.apiserver.targets import NAMESPACES, PODS, pod, target

POD_A = target("/api/v1/namespaces/default/pods/a")
STATUS_A = target("/api/v1/namespaces/default/pods/a/status")


class Rig:
    """A registry with one namespace."""

    def __init__(self) -> None:
        self.store = Store.open(None, selectable_fields)
        self.watch_cache = WatchCache(0)
        self.changes: list[StoreChange] = []
        self.store.listener = self._listen
        self.registry = Registry(self.store, STRATEGIES, FakeClock("2030-01-01T12:00:00Z"))
        self.registry.create(
            NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
        )
        self.changes.clear()

    def _listen(self, resource: str, change: StoreChange) -> None:
        self.changes.append(change)
        self.watch_cache.publish(resource, change)

    def change_types(self) -> list[str]:
        return [change.type for change in self.changes]


@pytest.fixture
def rig() -> Rig:
    return Rig()


def labelled(word: str) -> Any:
    return lambda old: old | {"metadata": old["metadata"] | {"labels": {"word": word}}}


def test_a_new_object_gets_what_only_the_server_gives(rig: Rig) -> None:
    sent = pod(uid="mine", creationTimestamp="2001-01-01T00:00:00Z", generation=7)
    metadata = rig.registry.create(PODS, sent)["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["creationTimestamp"] == "2030-01-01T12:00:00Z"
    assert (metadata["generation"], metadata["resourceVersion"]) == (1, "2")


def test_a_name_can_be_generated(rig: Rig) -> None:
    names = {
        rig.registry.create(PODS, pod("", generateName="job-"))["metadata"]["name"]
        for _ in range(20)
    }
    assert len(names) == 20
    assert all(name.startswith("job-") and len(name) == 9 for name in names)


@pytest.mark.parametrize(
    ("document", "code", "message"),
    [
        (pod(""), 422, "name or generateName is required"),
        (pod(resourceVersion="5"), 400, "resourceVersion should not be set"),
        (pod(namespace="other"), 400, "does not match the namespace"),
    ],
)
def test_what_cannot_be_created(rig: Rig, document: Document, code: int, message: str) -> None:
    with pytest.raises(StatusError, match=message) as refused:
        rig.registry.create(PODS, document)
    assert refused.value.code == code
    assert rig.changes == []


def test_a_namespace_must_be_there(rig: Rig) -> None:
    nowhere = structs.replace(PODS, namespace="nowhere")
    with pytest.raises(StatusError, match='namespaces "nowhere" not found'):
        rig.registry.create(nowhere, pod())


def test_a_name_is_taken_once(rig: Rig) -> None:
    rig.registry.create(PODS, pod())
    with pytest.raises(StatusError, match='pods "a" already exists'):
        rig.registry.create(PODS, pod())


def test_a_dry_run_writes_nothing(rig: Rig) -> None:
    rig.registry.create(PODS, pod(), dry_run=True)
    assert rig.changes == []
    rig.registry.create(PODS, pod())
    rig.registry.patch(POD_A, labelled("x"), dry_run=True)
    rig.registry.delete(POD_A, DeleteOptions(dry_run=("All",)))
    assert rig.change_types() == ["ADDED"]


def test_an_update_that_changes_nothing_writes_nothing(rig: Rig) -> None:
    created = rig.registry.create(PODS, pod())
    assert rig.registry.patch(POD_A, lambda old: old) == created
    assert rig.change_types() == ["ADDED"]


def test_a_version_in_an_update_must_be_the_latest(rig: Rig) -> None:
    created = rig.registry.create(PODS, pod())
    rig.registry.patch(POD_A, labelled("x"))
    with pytest.raises(StatusError, match="the object has been modified") as refused:
        rig.registry.replace(POD_A, created)
    assert refused.value.code == 409


def test_another_uid_is_another_object(rig: Rig) -> None:
    created = rig.registry.create(PODS, pod())
    other = created | {"metadata": created["metadata"] | {"uid": "other"}}
    with pytest.raises(
        StatusError, match="Precondition failed: UID in precondition: other"
    ) as refused:
        rig.registry.replace(POD_A, other)
    assert refused.value.code == 409
    with pytest.raises(StatusError, match=r"metadata\.uid.*immutable") as invalid:
        rig.registry.patch(STATUS_A, lambda _: other)
    assert invalid.value.code == 422


def test_what_is_the_servers_cannot_be_changed(rig: Rig) -> None:
    created = rig.registry.create(PODS, pod())
    forged = {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 9, "selfLink": "/x"}
    changed = rig.registry.patch(
        POD_A, lambda old: old | {"metadata": old["metadata"] | forged | {"labels": {"a": "b"}}}
    )
    expected = created["metadata"] | {"labels": {"a": "b"}, "resourceVersion": "3"}
    assert changed["metadata"] == expected


def test_a_pod_waits_for_its_node_after_a_delete(rig: Rig) -> None:
    rig.registry.create(PODS, pod())
    marked, gone = rig.registry.delete(POD_A, DeleteOptions(grace_period_seconds=10))
    assert not gone
    assert marked["metadata"]["deletionTimestamp"] == "2030-01-01T12:00:10Z"
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 10
    assert marked["metadata"]["generation"] == 2
    _, gone = rig.registry.delete(POD_A, DeleteOptions(grace_period_seconds=0))
    assert gone
    assert rig.change_types() == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]


@pytest.mark.parametrize(("again", "left"), [(None, 10), (20, 10), (10, 10), (3, 3)])
def test_a_second_delete_can_only_shorten_the_wait(rig: Rig, again: int | None, left: int) -> None:
    rig.registry.create(PODS, pod())
    rig.registry.delete(POD_A, DeleteOptions(grace_period_seconds=10))
    marked, gone = rig.registry.delete(POD_A, DeleteOptions(grace_period_seconds=again))
    assert not gone
    assert marked["metadata"]["deletionGracePeriodSeconds"] == left


def test_a_finalizer_holds_an_object_until_it_is_taken_away(rig: Rig) -> None:
    rig.registry.create(PODS, pod(finalizers=["example.com/hold"]))
    _, gone = rig.registry.delete(POD_A, DeleteOptions(grace_period_seconds=0))
    assert not gone
    with pytest.raises(StatusError, match=r"^[^[]*: Forbidden: no new .*\[\]string{.*}$"):
        rig.registry.patch(
            POD_A, lambda old: old | {"metadata": old["metadata"] | {"finalizers": ["x/y", "a/b"]}}
        )
    rig.registry.patch(POD_A, lambda old: old | {"metadata": old["metadata"] | {"finalizers": []}})
    assert rig.change_types() == ["ADDED", "MODIFIED", "DELETED"]


@pytest.mark.parametrize(
    ("preconditions", "message"),
    [
        (Preconditions(uid="other"), "the UID in the precondition"),
        (Preconditions(resource_version="1"), "the ResourceVersion in the precondition"),
    ],
)
def test_a_delete_has_preconditions(rig: Rig, preconditions: Preconditions, message: str) -> None:
    rig.registry.create(PODS, pod())
    with pytest.raises(StatusError, match=message):
        rig.registry.delete(POD_A, DeleteOptions(preconditions=preconditions))
    assert rig.change_types() == ["ADDED"]


def page(rig: Rig, **query: str) -> tuple[list[str], str, int | None]:
    lists = ListHandler(rig.store, rig.watch_cache)
    query = {name.rstrip("_"): value for name, value in query.items()}
    page = lists.page(HttpRequest(method="GET", path="", query=query), PODS)
    return [stored.key.name for stored in page.objects], page.token, page.remaining


def test_a_list_comes_in_pages_of_one_moment(rig: Rig) -> None:
    for name in "abcde":
        rig.registry.create(PODS, pod(name))
    names, token, remaining = page(rig, limit="2")
    assert (names, remaining) == (["a", "b"], 3)
    rig.registry.delete(structs.replace(POD_A, name="c"), DeleteOptions(grace_period_seconds=0))
    rig.registry.create(PODS, pod("bb"))
    names, token, remaining = page(rig, limit="2", continue_=token)
    assert (names, remaining) == (["c", "d"], 1)
    assert page(rig, limit="2", continue_=token) == (["e"], "", None)


def test_a_list_that_is_too_old_has_to_be_restarted(rig: Rig) -> None:
    for name in "abc":
        rig.registry.create(PODS, pod(name))
    _, token, _ = page(rig, limit="1")
    rig.registry.create(PODS, pod("d"))
    rig.watch_cache.compact()
    with pytest.raises(StatusError, match="too old") as refused:
        page(rig, continue_=token)
    assert refused.value.code == 410


def test_pages_hold_what_is_selected(rig: Rig) -> None:
    for name in "abcd":
        rig.registry.create(PODS, pod(name, labels={"even": str(name in "bd")}))
    names, token, remaining = page(rig, limit="1", labelSelector="even=True")
    assert (names, remaining) == (["b"], None)
    assert page(rig, limit="1", labelSelector="even=True", continue_=token)[0] == ["d"]
    assert page(rig, fieldSelector="metadata.name=c")[0] == ["c"]
