"""Classification of a new version of a pod."""

import pytest
from msgspec import structs

from podstatus.kube.objects.meta import ManagedFieldsEntry, OwnerReference
from podstatus.kube.objects.pod import CONFIG_MIRROR, CONFIG_SOURCE, Pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.sources.decide.pod_changes import (
    CONFIG_SEEN,
    PodDeleting,
    PodReconciled,
    PodUpdated,
    classify_change,
    oldest_first,
)
from podstatus.testing.builders import make_pod

DELETED = Time.parse("2026-01-01T00:00:00Z")


def changed(pod: Pod, **metadata: object) -> Pod:
    return structs.replace(pod, metadata=structs.replace(pod.metadata, **metadata))


def respecified(pod: Pod, **spec: object) -> Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, **spec))


POD = changed(
    make_pod("a", annotations={"note": "1", CONFIG_SEEN: "early"}),
    labels={"app": "a"},
    resource_version="1",
)
GOING = changed(POD, deletion_timestamp=DELETED, deletion_grace_period_seconds=30)
RUNNING = structs.replace(POD, status=PodStatus(phase="Running"))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (POD, POD, None),
        (POD, changed(POD, name="a"), None),
        (POD, changed(POD, annotations={"note": "1", CONFIG_SEEN: "late"}), None),
        (POD, changed(POD, annotations={"note": "2"}), PodUpdated),
        (POD, changed(POD, annotations=None), PodUpdated),
        (POD, changed(POD, annotations={"note": "1", "more": ""}), PodUpdated),
        (POD, changed(POD, labels={"app": "b"}), PodUpdated),
        (POD, changed(POD, labels=None), PodUpdated),
        (changed(POD, labels=None), changed(POD, labels={}, resource_version="2"), PodReconciled),
        (POD, respecified(POD, active_deadline_seconds=5), PodUpdated),
        (POD, GOING, PodDeleting),
        (GOING, changed(GOING, deletion_grace_period_seconds=1), PodDeleting),
        (GOING, changed(GOING, labels=None), PodDeleting),
        (POD, RUNNING, PodReconciled),
        (RUNNING, changed(RUNNING, labels=None), PodUpdated),
        (GOING, structs.replace(GOING, status=PodStatus(phase="Failed")), PodReconciled),
        (POD, changed(POD, resource_version="2"), PodReconciled),
        (POD, changed(POD, finalizers=("a/b",)), PodReconciled),
        (POD, changed(POD, owner_references=(OwnerReference(),)), PodReconciled),
        (POD, changed(POD, managed_fields=(ManagedFieldsEntry(),)), PodReconciled),
        (
            POD,
            changed(POD, annotations={"note": "1", CONFIG_MIRROR: "x", CONFIG_SOURCE: "api"}),
            PodReconciled,
        ),
    ],
)
def test_a_new_version_is_classified(old: Pod, new: Pod, expected: type | None) -> None:
    change = classify_change(old, new)
    assert (None if change is None else type(change)) is expected


def test_a_pod_keeps_the_time_at_which_it_was_seen_first() -> None:
    annotations = {"note": "2", CONFIG_SEEN: "late"}
    change = classify_change(POD, changed(POD, annotations=annotations))
    assert change is not None
    assert change.pod.metadata.annotations == {"note": "2", CONFIG_SEEN: "early"}
    assert annotations[CONFIG_SEEN] == "late"


def test_pods_without_a_time_come_first() -> None:
    def made(name: str, at: str | None) -> Pod:
        return changed(make_pod(name), creation_timestamp=Time.parse(at))

    pods = [
        made("c", "2026-01-03T00:00:00Z"),
        made("b", "2026-01-02T00:00:00Z"),
        made("a", "2026-01-02T00:00:00Z"),
        made("static", None),
    ]
    assert [pod.name for pod in oldest_first(pods)] == ["static", "b", "a", "c"]
