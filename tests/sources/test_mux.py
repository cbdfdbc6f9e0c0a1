"""Merging several sources into one stream of changes."""

import logging

import pytest
from msgspec import structs

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.sources.decide.pod_changes import (
    PodAdded,
    PodConfigChange,
    PodDeleting,
    PodReconciled,
    PodRemoved,
    PodUpdated,
)
from podstatus.sources.mux import Mux, RejectedPod
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
    """A mux of two sources, and its notifications."""

    def __init__(self) -> None:
        self._changes: list[str] = []
        self._refused: list[str] = []
        self.mux = Mux(["api", "file"], self._hear, on_rejected=self._hear_refused)

    def _hear(self, change: PodConfigChange) -> None:
        self._changes.append(spell(change))

    def _hear_refused(self, refused: RejectedPod) -> None:
        self._refused.append(f"{refused.source} {refused.pod.uid}: {refused.message}")

    def take_changes(self) -> str:
        """The notifications since the last call."""
        changes, self._changes = " ".join(self._changes), []
        return changes

    def refused(self) -> list[str]:
        refused, self._refused = self._refused, []
        return refused


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
    assert scene.take_changes() == "+o,y"


def test_all_sources_have_delivered_when_each_has_once(scene: Scene) -> None:
    scene.mux.update("file", pod("a"))
    ready = [scene.mux.all_sources_ready]
    for source in ("api", "api", "file"):
        scene.mux.deliver(source, [])
        ready.append(scene.mux.all_sources_ready)
    assert ready == [False, False, False, True]
    assert scene.take_changes() == "+a -a"


def test_an_equal_delivery_reports_no_change(scene: Scene) -> None:
    scene.mux.deliver("file", [pod("a"), pod("b")])
    scene.take_changes()
    scene.mux.deliver("file", [pod("b"), pod("a")])
    scene.mux.update("file", pod("a"))
    scene.mux.remove("file", pod("never"))
    assert scene.take_changes() == ""


def test_a_delivery_is_reported_in_upstreams_order(scene: Scene) -> None:
    scene.mux.deliver("api", [pod(uid) for uid in ("gone", "same", "status", "going", "spec")])
    scene.take_changes()
    news = [pod("status", phase="Failed"), going("going"), pod("spec", label="2"), pod("new")]
    scene.mux.deliver("api", [*news, pod("same")])
    assert scene.take_changes() == "-gone +new ~spec !going =status"


def test_single_changes_are_reported_one_by_one(scene: Scene) -> None:
    scene.mux.deliver("api", [])
    scene.mux.update("api", pod("a"))
    scene.mux.update("api", pod("a", phase="Running"))
    scene.mux.update("api", pod("a", phase="Running", label="2"))
    scene.mux.update("api", going("a"))
    scene.mux.remove("api", going("a"))
    scene.mux.remove("api", going("a"))
    assert scene.take_changes() == "+a =a ~a !a -a"


def test_a_pod_on_its_way_out_is_added_as_any_other(scene: Scene) -> None:
    scene.mux.deliver("api", [going("a")])
    assert scene.take_changes() == "+a"


def test_a_static_pod_with_another_uid_is_another_pod(scene: Scene) -> None:
    scene.mux.deliver("file", [pod("1", "web")])
    scene.mux.deliver("file", [pod("2", "web")])
    assert scene.take_changes() == "+1 -1 +2"
    assert scene.refused() == []


def test_a_pod_that_changed_its_name_is_another_pod(scene: Scene) -> None:
    scene.mux.deliver("file", [pod("1", "a"), pod("2", "b")])
    scene.take_changes()
    scene.mux.deliver("file", [pod("2", "a"), pod("1", "b")])
    assert scene.take_changes() == "-2 -1 +1,2"
    assert {(p.uid, p.name) for p in scene.mux.pods()} == {("1", "b"), ("2", "a")}
    assert scene.refused() == []


def test_of_two_pods_of_one_name_the_first_is_taken_and_the_other_reported_once(
    scene: Scene,
) -> None:
    for _ in range(3):
        scene.mux.deliver("file", [pod("1", "web"), pod("2", "web")])
    assert scene.take_changes() == "+1"
    assert scene.refused() == ['file 2: due to duplicate pod name "web"']


def test_a_pod_that_runs_stays_though_another_one_of_its_name_comes_first(scene: Scene) -> None:
    scene.mux.deliver("file", [pod("2", "web")])
    scene.mux.deliver("file", [pod("1", "web"), pod("2", "web")])
    assert scene.take_changes() == "+2"


def test_the_one_that_was_refused_is_taken_when_the_other_is_gone(scene: Scene) -> None:
    scene.mux.deliver("file", [pod("1", "web"), pod("2", "web")])
    scene.mux.deliver("file", [pod("2", "web", label="new")])
    assert scene.take_changes() == "+1 -1 +2"
    assert scene.mux.pods() == [pod("2", "web", label="new")]


def test_the_same_name_in_two_sources_is_a_static_pod_and_its_mirror(scene: Scene) -> None:
    scene.mux.deliver("file", [pod("static", "web")])
    scene.mux.deliver("api", [pod("mirror", "web")])
    assert scene.take_changes() == "+static +mirror"
    assert scene.refused() == []


def test_a_uid_belongs_to_the_source_that_had_it_first(scene: Scene) -> None:
    scene.mux.deliver("api", [pod("1", "api")])
    scene.mux.deliver("file", [pod("1", "file")])
    scene.mux.update("file", pod("1", "file", label="2"))
    scene.mux.deliver("api", [pod("1", "api")])
    assert scene.take_changes() == "+1"
    assert scene.refused() == ["file 1: due to duplicate UID 1 of pod default/api from api"]
    scene.mux.remove("file", pod("1", "file"))
    assert scene.take_changes() == ""


def test_a_uid_is_free_for_others_when_its_pod_is_gone(scene: Scene) -> None:
    scene.mux.deliver("api", [pod("1", "api")])
    scene.mux.deliver("file", [pod("1", "file"), pod("2")])
    scene.mux.remove("api", pod("1", "api"))
    assert scene.take_changes() == "+1 +2 -1 +1"
    assert [p.name for p in scene.mux.pods() if p.uid == "1"] == ["file"]


def test_two_pods_of_one_uid_in_one_source_are_reported_once(scene: Scene) -> None:
    for _ in range(2):
        scene.mux.deliver("file", [pod("1", "a"), pod("1", "b"), pod("1", "a")])
    assert scene.take_changes() == "+1"
    assert scene.refused() == ["file 1: due to duplicate UID 1 of pod default/a from file"]


def test_a_handler_that_fails_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    changes: list[str] = []

    def fail(change: PodConfigChange) -> None:
        changes.append(spell(change))
        raise RuntimeError("no")

    def fail_too(_: RejectedPod) -> None:
        raise RuntimeError("no")

    mux = Mux(["file"], fail, on_rejected=fail_too)
    mux.deliver("file", [pod("a"), pod("b"), pod("x", "a")])
    with caplog.at_level(logging.CRITICAL):
        mux.deliver("file", [pod("b", label="2")])
    assert changes == ["+a,b", "-a", "~b"]
    assert mux.pods() == [pod("b", label="2")]
    assert mux.all_sources_ready


def test_an_unknown_source_is_rejected(scene: Scene) -> None:
    with pytest.raises(ValueError, match="unknown source 'http'; configured sources: api, file"):
        scene.mux.deliver("http", [])
