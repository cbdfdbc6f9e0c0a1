"""Laws that hold for any status, whatever odd things it says."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from podstatus import FeatureGates, PodManager, PodStatus, StatusManager
from podstatus.kube.conditions import pod_condition_by_kubelet
from podstatus.kube.encoding.codec import from_document, to_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.patch import apply_patch
from podstatus.kube.patch.schema import POD
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.merge import merge_pod_status, prepare_status_patch
from podstatus.status.decide.normalize_and_compare import normalize_status
from podstatus.testing.fakes import FakeDeletionSafety
from tests.support.data.strategies import FOREIGN, OURS, pods, statuses

NOW = Time.parse("2030-01-01T00:00:00Z")
GATES = FeatureGates()
WITH_DISRUPTION = [*OURS, *FOREIGN, "DisruptionTarget"]


def patched(old: PodStatus, body: bytes) -> dict[str, Any]:
    original: Any = {"metadata": {"uid": "u-1"}, "status": to_document(old)}
    result: Any = apply_patch(original, msgspec.json.decode(body), POD)
    return to_document(from_document(result["status"], PodStatus))


@given(statuses(), statuses())
def test_a_created_patch_makes_the_new_status_of_the_old_one(
    old: PodStatus, new: PodStatus
) -> None:
    patch = prepare_status_patch("u-1", old, new)
    assert patched(old, patch.body) == to_document(new)


@given(statuses(unique=False))
def test_equal_statuses_give_nothing_to_send(status: PodStatus) -> None:
    again = from_document(to_document(status), PodStatus)
    assert prepare_status_patch("u-1", status, again).unchanged


@given(pods(), statuses(), statuses(), st.booleans())
def test_merging_what_was_merged_gives_nothing_to_send(
    pod: Pod, old: PodStatus, new: PodStatus, could_run: bool
) -> None:
    def merge(into: PodStatus) -> PodStatus:
        return merge_pod_status(
            pod, into, new, could_have_running_containers=could_run, now=NOW, gates=GATES
        ).status

    merged = merge(old)
    assert prepare_status_patch("u-1", merged, merge(merged)).unchanged


@given(pods(), statuses(types=WITH_DISRUPTION), statuses(types=WITH_DISRUPTION), st.booleans())
def test_foreign_conditions_are_never_lost(
    pod: Pod, old: PodStatus, new: PodStatus, could_run: bool
) -> None:
    merged = merge_pod_status(
        pod, old, new, could_have_running_containers=could_run, now=NOW, gates=GATES
    ).status
    foreign = [c for c in old.conditions or () if not pod_condition_by_kubelet(c.type, GATES)]
    kept = {c.type: c for c in merged.conditions or ()}
    assert [c.type for c in foreign] == [c.type for c in (merged.conditions or ())[: len(foreign)]]
    assert all(kept[c.type] == c for c in foreign if c.type != "DisruptionTarget")


@given(pods(), statuses(unique=False))
def test_normalising_twice_changes_nothing_more(pod: Pod, status: PodStatus) -> None:
    once = normalize_status(pod, status)
    assert normalize_status(pod, once) == once


@settings(max_examples=60)
@given(st.data())
def test_versions_grow_by_one_while_an_entry_lives(data: st.DataObject) -> None:
    pod = data.draw(pods())
    manager = StatusManager(None, PodManager([pod]), FakeDeletionSafety())
    version = 0
    for _ in range(data.draw(st.integers(1, 12))):
        operation = data.draw(st.sampled_from(["set", "set", "ready", "terminate", "remove"]))
        changed = False
        if operation == "set":
            _, changed = manager.set_pod_status(pod, data.draw(statuses(unique=False)))
        elif operation == "ready":
            ready = data.draw(st.booleans())
            manager.set_container_readiness(pod.uid, "fake://app", ready=ready)
        elif operation == "terminate":
            manager.terminate_pod(pod)
        else:
            manager.remove_orphaned_statuses(set())
        entry = manager.entries().get(pod.uid)
        if operation == "remove":
            assert entry is None
            version = 0
        elif entry is not None:
            assert entry.version in (version, version + 1)
            assert entry.version == version + 1 or not changed
            version = entry.version
