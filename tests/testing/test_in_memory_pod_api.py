import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

import msgspec
import pytest
from msgspec import structs

from podstatus.kube.api_errors import (
    ApiError,
    BusyError,
    ConflictError,
    GoneError,
    UnavailableError,
)
from podstatus.kube.encoding.equality import semantic_equal
from podstatus.kube.objects.pod import ApiUID, Pod
from podstatus.kube.scalars.time import Time
from podstatus.pods.pod_manager import PodManager
from podstatus.status.ports import PodApi
from podstatus.testing.builders import make_pod, make_status
from podstatus.testing.in_memory_pod_api import ApiCall, InMemoryPodApi

T = TypeVar("T")


def run(call: Coroutine[object, object, T]) -> T:
    return asyncio.run(call)


def patch_of(uid: str, **status: object) -> bytes:
    return msgspec.json.encode({"metadata": {"uid": uid}, "status": status})


def delete(api: PodApi, uid: str) -> None:
    run(api.delete_pod("default", "pod", uid=ApiUID(uid), grace_period_seconds=0))


def test_get_answers_with_the_stored_pod() -> None:
    pod = make_pod(status=make_status("Running"))
    api: PodApi = InMemoryPodApi(pod, versions=False)
    assert semantic_equal(run(api.get_pod("default", "pod")), pod)


def test_every_write_gives_a_pod_a_greater_resource_version() -> None:
    api, seen = InMemoryPodApi(make_pod(), make_pod("other")), []
    for write in (
        lambda: api.put(make_pod()),
        lambda: api.patch("default", "pod", {"status": {"phase": "Running"}}),
        lambda: run(api.patch_pod_status("default", "pod", b'{"status":{"phase":"Failed"}}')),
        lambda: api.request_deletion("default", "pod", at="2024-01-01T00:00:00Z"),
    ):
        write()
        seen.append(int(run(api.get_pod("default", "pod")).metadata.resource_version))
    assert seen == [3, 4, 5, 6]


def test_get_of_a_missing_pod_answers_404_and_is_recorded() -> None:
    api = InMemoryPodApi()
    with pytest.raises(GoneError) as error:
        run(api.get_pod("default", "pod"))
    assert error.value.code == 404
    assert api.calls == [ApiCall(verb="get", namespace="default", name="pod", code=404)]


def test_patch_merges_into_the_stored_pod_and_answers_with_it() -> None:
    api = InMemoryPodApi(make_pod(status=make_status("Pending", Ready="False", Mine="True")))
    conditions = [{"type": "Ready", "status": "True"}]
    answer = run(
        api.patch_pod_status(
            "default", "pod", patch_of("uid-pod", phase="Running", conditions=conditions)
        )
    )
    assert semantic_equal(answer.status, make_status("Running", Ready="True", Mine="True"))
    assert api.pod("default", "pod") == answer


def test_patch_with_the_uid_of_another_pod_answers_409_and_changes_nothing() -> None:
    api = InMemoryPodApi(make_pod())
    before = api.pods()
    with pytest.raises(ConflictError):
        run(api.patch_pod_status("default", "pod", patch_of("uid-other", phase="Running")))
    assert api.pods() == before


def test_uid_preconditions_can_be_switched_off() -> None:
    api = InMemoryPodApi(make_pod(), check_uid=False)
    patched = run(api.patch_pod_status("default", "pod", patch_of("uid-other", phase="Running")))
    assert patched.status.phase == "Running"


def test_patch_without_a_uid_has_no_precondition() -> None:
    api = InMemoryPodApi(make_pod())
    body = msgspec.json.encode({"status": {"phase": "Running"}})
    assert run(api.patch_pod_status("default", "pod", body)).status.phase == "Running"


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        pytest.param({"spec": {"$retainKeys": 5}}, 400, id="malformed"),
        pytest.param({"status": {"conditions": [{"status": "True"}]}}, 500, id="without its key"),
    ],
)
def test_a_patch_that_cannot_be_applied_fails_as_on_a_server_and_changes_nothing(
    patch: dict[str, object], code: int
) -> None:
    api = InMemoryPodApi(make_pod(status=make_status("", A="True")))
    before = api.pods()
    with pytest.raises(ApiError) as error:
        run(api.patch_pod_status("default", "pod", msgspec.json.encode(patch)))
    assert error.value.code == code
    assert [call.code for call in api.calls] == [code]
    assert api.pods() == before


def test_delete_removes_the_pod_and_records_how() -> None:
    api = InMemoryPodApi(make_pod())
    delete(api, "uid-pod")
    assert api.pod("default", "pod") is None
    assert api.calls == [
        ApiCall(
            verb="delete", namespace="default", name="pod", uid="uid-pod", grace_period_seconds=0
        )
    ]


def test_delete_of_another_uid_answers_409_and_the_pod_stays() -> None:
    api = InMemoryPodApi(make_pod())
    with pytest.raises(ConflictError):
        delete(api, "uid-other")
    assert api.pod("default", "pod") is not None


def test_injected_failures_queue_up_and_then_calls_work_again() -> None:
    api = InMemoryPodApi(make_pod())
    api.fail("get", "default", "pod", code=503, times=2)
    api.fail("get", "default", "pod", code=429)
    for kind in (UnavailableError, UnavailableError, BusyError):
        with pytest.raises(kind):
            run(api.get_pod("default", "pod"))
    assert run(api.get_pod("default", "pod")).name == "pod"
    assert [call.code for call in api.calls] == [503, 503, 429, None]


def patch_phase(api: PodApi, uid: str) -> None:
    run(api.patch_pod_status("default", "pod", patch_of(uid, phase="Running")))


@pytest.mark.parametrize(("verb", "call"), [("patch", patch_phase), ("delete", delete)])
def test_a_failing_call_has_no_effect(verb: str, call: Callable[[PodApi, str], None]) -> None:
    api = InMemoryPodApi(make_pod())
    before = api.pods()
    api.fail(verb, "default", "pod", code=500)
    with pytest.raises(UnavailableError):
        call(api, "uid-pod")
    assert api.pods() == before


def test_a_failure_is_for_one_verb_of_one_pod() -> None:
    api = InMemoryPodApi(make_pod("a"), make_pod("b"))
    api.fail("patch", "default", "a", code=500)
    assert run(api.get_pod("default", "a")).name == "a"
    assert run(api.patch_pod_status("default", "b", patch_of("uid-b", phase="Running")))
    with pytest.raises(ApiError):
        run(api.patch_pod_status("default", "a", patch_of("uid-a", phase="Running")))


def test_a_requested_deletion_marks_the_pod_and_keeps_it() -> None:
    api = InMemoryPodApi(make_pod())
    api.request_deletion("default", "pod", at="2024-01-01T00:00:00Z", grace=5)
    pod = run(api.get_pod("default", "pod"))
    assert pod.metadata.deletion_timestamp == Time.parse("2024-01-01T00:00:00Z")
    assert pod.metadata.deletion_grace_period_seconds == 5


def test_other_writers_patch_unseen_and_learn_whether_the_pod_exists() -> None:
    api = InMemoryPodApi(make_pod())
    assert api.patch("default", "pod", {"status": {"reason": "Theirs"}})
    assert not api.patch("default", "gone", {"status": {"reason": "Theirs"}})
    stored = api.pod("default", "pod")
    assert stored is not None
    assert stored.status.reason == "Theirs"
    assert api.calls == []


def test_a_pod_is_stored_as_it_would_travel() -> None:
    started = Time.parse("2024-01-01T00:00:00.75Z")
    api = InMemoryPodApi(make_pod(status=structs.replace(make_status(""), start_time=started)))
    stored = run(api.get_pod("default", "pod"))
    assert stored.status.start_time == Time.parse("2024-01-01T00:00:00Z")
    assert stored.status.conditions is None  # an empty list is omitted on the wire


class Watcher:
    def __init__(self) -> None:
        self.messages: list[str] = []

    def update_pod(self, pod: Pod) -> None:
        self.messages.append(f"{pod.name} is {pod.status.phase or 'new'}")

    def remove_pod(self, pod: Pod) -> None:
        self.messages.append(f"{pod.name} is gone")


def test_a_watcher_is_notified_of_every_change() -> None:
    watcher = Watcher()
    api = InMemoryPodApi(make_pod(), watcher=watcher)
    patch_phase(api, "uid-pod")
    run(api.get_pod("default", "pod"))
    delete(api, "uid-pod")
    api.remove("default", "pod")
    assert watcher.messages == ["pod is new", "pod is Running", "pod is gone"]


def test_a_directory_can_watch() -> None:
    directory = PodManager()
    api = InMemoryPodApi(make_pod(), watcher=directory)
    patch_phase(api, "uid-pod")
    assert directory.pods() == api.pods()
    delete(api, "uid-pod")
    assert directory.pods() == []
