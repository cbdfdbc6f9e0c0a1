import pytest
from msgspec import structs

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import ApiUID, Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.pods.pod_manager import PodManager
from podstatus.status.decide.plan import (
    BatchPlan,
    PodSync,
    can_be_deleted,
    is_replaced_pod,
    needs_reconcile,
    needs_update,
    plan_changes,
    plan_full,
)
from podstatus.status.decide.versioned_status import VersionedStatus
from podstatus.testing.builders import make_pod, make_static_pod, make_status, running
from tests.support.status_node import deleting

RUNNING, FAILED = make_status("Running"), make_status("Failed")
STATIC, MIRROR = make_static_pod(), make_static_pod(mirror=True)


def entry(
    pod: Pod, version: int = 1, status: PodStatus = RUNNING, *, finished: bool = False
) -> VersionedStatus:
    return VersionedStatus(
        version=version,
        namespace=pod.namespace,
        name=pod.name,
        finished=finished,
        status=status,
    )


def changes(
    entries: dict[PodUID, VersionedStatus], sent: dict[str, int], directory: PodManager
) -> BatchPlan:
    return plan_changes(
        entries, {ApiUID(u): v for u, v in sent.items()}, directory.uid_translations()
    )


def full(
    entries: dict[PodUID, VersionedStatus], sent: dict[str, int], directory: PodManager
) -> BatchPlan:
    return plan_full(
        entries,
        {ApiUID(u): v for u, v in sent.items()},
        directory.uid_translations(),
        directory,
        FeatureGates(),
    )


def api_uids(plan: BatchPlan) -> list[str]:
    return [sync.api_uid for sync in plan.syncs]


def shown(pod: Pod, status: PodStatus) -> Pod:
    return structs.replace(pod, status=status)


def test_a_sync_names_its_pod_for_the_log() -> None:
    sync = PodSync(PodUID("u"), ApiUID("mirror"), entry(make_pod("web", namespace="shop")))
    assert str(sync) == "pod=shop/web uid=u"


# Changed pods


@pytest.mark.parametrize(
    ("sent", "due"),
    [({}, True), ({"uid-pod": 1}, True), ({"uid-pod": 2}, False), ({"uid-pod": 3}, False)],
)
def test_a_version_newer_than_the_one_sent_is_due(*, sent: dict[str, int], due: bool) -> None:
    pod = make_pod()
    plan = changes({pod.uid: entry(pod, 2)}, sent, PodManager([pod]))
    assert bool(plan.syncs) is due
    assert plan.forget == frozenset()


def test_a_pod_that_the_directory_does_not_know_is_synced_all_the_same() -> None:
    pod = make_pod()
    assert api_uids(changes({pod.uid: entry(pod)}, {}, PodManager())) == [pod.uid]


def test_a_static_pod_goes_to_its_mirror() -> None:
    plan = changes({STATIC.uid: entry(STATIC)}, {}, PodManager([STATIC, MIRROR]))
    assert plan.syncs == (PodSync(STATIC.uid, ApiUID(MIRROR.uid), entry(STATIC)),)


def test_versions_are_compared_under_the_uid_of_the_mirror() -> None:
    entries, directory = {STATIC.uid: entry(STATIC, 2)}, PodManager([STATIC, MIRROR])
    assert not changes(entries, {MIRROR.uid: 2}, directory).syncs
    assert changes(entries, {STATIC.uid: 2}, directory).syncs


def test_a_static_pod_without_a_mirror_waits() -> None:
    entries, directory = {STATIC.uid: entry(STATIC)}, PodManager([STATIC])
    assert not changes(entries, {}, directory).syncs
    assert not full(entries, {}, directory).syncs


# Full sync


def test_nothing_is_due_when_the_api_shows_what_is_cached() -> None:
    pod = make_pod(status=RUNNING)
    plan = full({pod.uid: entry(pod)}, {pod.uid: 1}, PodManager([pod]))
    assert plan == BatchPlan(frozenset(), ())


def test_what_was_not_sent_is_due_and_no_version_is_forgotten() -> None:
    pod = make_pod()
    plan = full({pod.uid: entry(pod, 2)}, {pod.uid: 1}, PodManager([pod]))
    assert api_uids(plan) == [pod.uid]
    assert plan.forget == frozenset()


def test_what_the_api_shows_differently_is_due_and_its_version_is_forgotten() -> None:
    pod = make_pod(status=FAILED)
    plan = full({pod.uid: entry(pod)}, {pod.uid: 1}, PodManager([pod]))
    assert api_uids(plan) == [pod.uid]
    assert plan.forget == {ApiUID(pod.uid)}


def test_a_reconciled_static_pod_forgets_the_version_of_its_mirror() -> None:
    directory = PodManager([STATIC, shown(MIRROR, FAILED)])
    plan = full({STATIC.uid: entry(STATIC)}, {MIRROR.uid: 1}, directory)
    assert api_uids(plan) == [MIRROR.uid]
    assert plan.forget == {ApiUID(MIRROR.uid)}


def test_versions_of_pods_neither_cached_nor_mirrored_are_forgotten() -> None:
    pod = make_pod(status=RUNNING)
    sent = {pod.uid: 1, MIRROR.uid: 4, "long gone": 7}
    plan = full({pod.uid: entry(pod)}, sent, PodManager([pod, STATIC, MIRROR]))
    assert plan.forget == {"long gone"}


def test_changes_alone_forget_nothing() -> None:
    assert changes({}, {"long gone": 7}, PodManager()).forget == frozenset()


# Updates


@pytest.mark.parametrize(
    ("pod", "finished", "expected"),
    [
        pytest.param(deleting(make_pod(status=FAILED)), True, True, id="waits to be deleted"),
        pytest.param(deleting(make_pod(status=FAILED)), False, False, id="not finished"),
        pytest.param(make_pod(status=FAILED), True, False, id="deletion not requested"),
        pytest.param(deleting(make_pod(status=RUNNING)), True, False, id="not terminal"),
    ],
)
def test_a_pod_that_was_sent_needs_an_update_only_to_be_deleted(
    *, pod: Pod, finished: bool, expected: bool
) -> None:
    sync = PodSync(pod.uid, ApiUID(pod.uid), entry(pod, finished=finished))
    assert needs_update(sync, 1, PodManager([pod])) is expected


def test_surprise_7_a_static_pod_never_waits_to_be_deleted() -> None:
    static, mirror = deleting(shown(STATIC, FAILED)), deleting(shown(MIRROR, FAILED))
    sync = PodSync(static.uid, ApiUID(mirror.uid), entry(static, finished=True))
    assert not needs_update(sync, 1, PodManager([static, mirror]))


# Reconciling


def reconciles(directory: PodManager, uid: PodUID, status: PodStatus) -> bool:
    return needs_reconcile(uid, status, directory, FeatureGates())


def test_a_pod_is_reconciled_when_the_api_shows_something_else() -> None:
    pod = make_pod(status=RUNNING)
    assert not reconciles(PodManager([pod]), pod.uid, RUNNING)
    assert reconciles(PodManager([pod]), pod.uid, FAILED)


def test_what_the_api_shows_is_normalised_before_it_is_compared() -> None:
    pod = make_pod(status=make_status("Running", running("b"), running("a")))
    cached = make_status("Running", running("a"), running("b"))
    assert not reconciles(PodManager([pod]), pod.uid, cached)


def test_foreign_conditions_are_no_reason_to_reconcile() -> None:
    pod = make_pod(status=make_status("Running", Theirs="True"))
    assert not reconciles(PodManager([pod]), pod.uid, RUNNING)


def test_a_pod_that_the_directory_does_not_know_is_not_reconciled() -> None:
    assert not reconciles(PodManager(), make_pod().uid, RUNNING)


def test_a_static_pod_is_compared_with_its_mirror_and_not_without_one() -> None:
    static, mirror = shown(STATIC, FAILED), shown(MIRROR, RUNNING)
    assert not reconciles(PodManager([static, mirror]), static.uid, RUNNING)
    assert reconciles(PodManager([static, mirror]), static.uid, FAILED)
    assert not reconciles(PodManager([static]), static.uid, RUNNING)


# Deletion


@pytest.mark.parametrize(
    ("pod", "finished", "expected"),
    [
        pytest.param(deleting(make_pod(status=FAILED)), True, True, id="failed"),
        pytest.param(
            deleting(make_pod(status=make_status("Succeeded"))), True, True, id="succeeded"
        ),
        pytest.param(deleting(make_pod(status=FAILED)), False, False, id="not finished"),
        pytest.param(make_pod(status=FAILED), True, False, id="deletion not requested"),
        pytest.param(deleting(make_pod(status=RUNNING)), True, False, id="not terminal there"),
        pytest.param(deleting(shown(MIRROR, FAILED)), True, False, id="a mirror pod"),
    ],
)
def test_a_pod_can_be_deleted_when_asked_for_terminal_and_finished(
    *, pod: Pod, finished: bool, expected: bool
) -> None:
    assert can_be_deleted(pod, finished=finished) is expected


@pytest.mark.parametrize(
    ("translated", "another"), [("ours", False), ("theirs", True), ("", False)]
)
def test_an_object_with_another_uid_is_another_pod_and_one_without_is_ours(
    translated: str, another: bool
) -> None:
    assert is_replaced_pod(PodUID(translated), PodUID("ours")) is another
