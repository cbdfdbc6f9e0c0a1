"""One stream of changes out of several sources."""

import logging

import pytest
from msgspec import structs

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.sources.mux import Mux, RejectedPod
from podstatus.sources.pod_changes import (
    PodAdded,
    PodConfigChange,
    PodDeleting,
    PodReconciled,
    PodRemoved,
    PodUpdated,
)
from podstatus.testing.builders import make_pod


def spell(change: PodConfigChange) -> str:
    match change:
        case PodAdded(pods):
            return "+" + ",".join(pod.uid for pod in pods)
        case PodUpdated(pod):
            return f"~{pod.uid}"
        case PodDeleting(pod):
            return f"!{pod.uid}"
        case PodRemoved(pod):
            return f"-{pod.uid}"
        case PodReconciled(pod):
            return f"={pod.uid}"


class Scene:
    """A mux of two sources, and what it told."""

    def __init__(self) -> None:
        self._told: list[str] = []
        self._refused: list[str] = []
        self.mux = Mux(["api", "file"], self._hear, on_rejected=self._hear_refused)

    def _hear(self, change: PodConfigChange) -> None:
        self._told.append(spell(change))

    def _hear_refused(self, refused: RejectedPod) -> None:
        self._refused.append(f"{refused.source} {refused.pod.uid}: {refused.message}")

    def told(self) -> str:
        """What was told since the last time."""
        told, self._told = " ".join(self._told), []
        return told

    def refused(self) -> list[str]:
        told, self._refused = self._refused, []
        return told


@pytest.fixture
def scene() -> Scene:
    return Scene()


def pod(uid: str, name: str = "", *, label: str = "", phase: str = "", made: str = "") -> Pod:
    bare = make_pod(name or uid, uid=uid, status=PodStatus(phase=phase))
    created = Time.parse(made or None)
    labels = {"v": label} if label else None
    metadata = structs.replace(bare.metadata, labels=labels, creation_timestamp=created)
    return structs.replace(bare, metadata=metadata)


def going(uid: str) -> Pod:
    return make_pod(uid, uid=uid, deleted_at="2026-01-01T00:00:00Z")


def test_the_pods_of_a_delivery_are_added_together_the_oldest_first(scene: Scene) -> None:
    young, old = pod("y", made="2026-01-02T00:00:00Z"), pod("o", made="2026-01-01T00:00:00Z")
    scene.mux.deliver("api", [young, old])
    assert scene.told() == "+o,y"


def test_all_sources_have_delivered_when_each_has_once(scene: Scene) -> None:
    scene.mux.update("file", pod("a"))
    assert (scene.mux.ready_sources(), scene.mux.all_sources_ready) == (frozenset(), False)
    scene.mux.deliver("api", [])
    scene.mux.deliver("api", [])
    assert (scene.mux.ready_sources(), scene.mux.all_sources_ready) == (frozenset({"api"}), False)
    scene.mux.deliver("file", [])
    assert (scene.mux.ready_sources(), scene.mux.all_sources_ready) == (
        frozenset({"api", "file"}),
        True,
    )
    assert scene.told() == "+a -a"


def test_the_same_again_tells_nobody(scene: Scene) -> None:
    scene.mux.deliver("file", [pod("a"), pod("b")])
    scene.told()
    scene.mux.deliver("file", [pod("b"), pod("a")])
    scene.mux.update("file", pod("a"))
    scene.mux.remove("file", pod("never"))
    assert scene.told() == ""


def test_a_delivery_is_told_in_the_order_gone_new_changed_deleted_reconciled(scene: Scene) -> None:
    scene.mux.deliver("api", [pod(uid) for uid in ("gone", "same", "status", "going", "spec")])
    scene.told()
    news = [pod("status", phase="Failed"), going("going"), pod("spec", label="2"), pod("new")]
    scene.mux.deliver("api", [*news, pod("same")])
    assert scene.told() == "-gone +new ~spec !going =status"


def test_single_changes_are_told_one_by_one(scene: Scene) -> None:
    scene.mux.deliver("api", [])
    scene.mux.update("api", pod("a"))
    scene.mux.update("api", pod("a", phase="Running"))
    scene.mux.update("api", pod("a", phase="Running", label="2"))
    scene.mux.update("api", going("a"))
    scene.mux.remove("api", going("a"))
    scene.mux.remove("api", going("a"))
    assert scene.told() == "+a =a ~a !a -a"


def test_a_pod_on_its_way_out_is_added_as_any_other(scene: Scene) -> None:
    scene.mux.deliver("api", [going("a")])
    assert scene.told() == "+a"


def test_a_static_pod_with_another_uid_is_another_pod(scene: Scene) -> None:
    scene.mux.deliver("file", [pod("1", "web")])
    scene.mux.deliver("file", [pod("2", "web")])
    assert scene.told() == "+1 -1 +2"
    assert scene.refused() == []


def test_a_pod_that_changed_its_name_is_another_pod(scene: Scene) -> None:
    scene.mux.deliver("file", [pod("1", "a"), pod("2", "b")])
    scene.told()
    scene.mux.deliver("file", [pod("2", "a"), pod("1", "b")])
    assert scene.told() == "-2 -1 +1,2"
    assert {(p.uid, p.name) for p in scene.mux.pods()} == {("1", "b"), ("2", "a")}
    assert scene.refused() == []


def test_of_two_pods_of_one_name_the_first_is_taken_and_the_other_reported_once(
    scene: Scene,
) -> None:
    for _ in range(3):
        scene.mux.deliver("file", [pod("1", "web"), pod("2", "web")])
    assert scene.told() == "+1"
    assert scene.refused() == ['file 2: due to duplicate pod name "web"']


def test_a_pod_that_runs_stays_though_another_one_of_its_name_comes_first(scene: Scene) -> None:
    scene.mux.deliver("file", [pod("2", "web")])
    scene.mux.deliver("file", [pod("1", "web"), pod("2", "web")])
    assert scene.told() == "+2"


def test_the_one_that_was_refused_is_taken_when_the_other_is_gone(scene: Scene) -> None:
    scene.mux.deliver("file", [pod("1", "web"), pod("2", "web")])
    scene.mux.deliver("file", [pod("2", "web", label="new")])
    assert scene.told() == "+1 -1 +2"
    assert scene.mux.pods() == [pod("2", "web", label="new")]


def test_the_same_name_in_two_sources_is_a_static_pod_and_its_mirror(scene: Scene) -> None:
    scene.mux.deliver("file", [pod("static", "web")])
    scene.mux.deliver("api", [pod("mirror", "web")])
    assert scene.told() == "+static +mirror"
    assert scene.refused() == []


def test_a_uid_belongs_to_the_source_that_had_it_first(scene: Scene) -> None:
    scene.mux.deliver("api", [pod("1", "api")])
    scene.mux.deliver("file", [pod("1", "file")])
    scene.mux.update("file", pod("1", "file", label="2"))
    scene.mux.deliver("api", [pod("1", "api")])
    assert scene.told() == "+1"
    assert scene.refused() == ["file 1: due to duplicate UID 1 of pod default/api from api"]
    scene.mux.remove("file", pod("1", "file"))
    assert scene.told() == ""


def test_a_uid_is_free_for_others_when_its_pod_is_gone(scene: Scene) -> None:
    scene.mux.deliver("api", [pod("1", "api")])
    scene.mux.deliver("file", [pod("1", "file"), pod("2")])
    scene.mux.remove("api", pod("1", "api"))
    assert scene.told() == "+1 +2 -1 +1"
    assert [p.name for p in scene.mux.pods() if p.uid == "1"] == ["file"]


def test_two_pods_of_one_uid_in_one_source_are_reported_once(scene: Scene) -> None:
    for _ in range(2):
        scene.mux.deliver("file", [pod("1", "a"), pod("1", "b"), pod("1", "a")])
    assert scene.told() == "+1"
    assert scene.refused() == ["file 1: due to duplicate UID 1 of pod default/a from file"]


def test_a_handler_that_fails_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    def fail(change: PodConfigChange) -> None:
        told.append(spell(change))
        raise RuntimeError("no")

    def fail_too(_: RejectedPod) -> None:
        raise RuntimeError("no")

    mux = Mux(["file"], fail, on_rejected=fail_too)
    mux.deliver("file", [pod("a"), pod("b"), pod("x", "a")])
    with caplog.at_level(logging.CRITICAL):
        mux.deliver("file", [pod("b", label="2")])
    assert told == ["+a,b", "-a", "~b"]
    assert mux.pods() == [pod("b", label="2")]
    assert mux.all_sources_ready


def test_a_source_that_nobody_named_is_refused(scene: Scene) -> None:
    with pytest.raises(ValueError, match="unknown source 'http'; configured sources: api, file"):
        scene.mux.deliver("http", [])
