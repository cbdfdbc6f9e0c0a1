"""The default policy, by what the API server and the node see of it."""

import asyncio
import random
from itertools import pairwise
from typing import Any

import pytest
from msgspec import structs

from podstatus.base.msgspec_json import decode_json
from podstatus.kube.api_errors import BusyError, UnavailableError
from podstatus.kube.conditions import is_condition_true
from podstatus.kube.objects.pod import ApiUID, Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.pods.pod_manager import PodManager
from podstatus.status.manager import StatusManager
from podstatus.status.policy import ParallelSyncOptions, SyncPolicy
from podstatus.status.sync.syncer import SyncCounts
from podstatus.testing.builders import ended, make_pod, make_static_pod, make_status
from podstatus.testing.fakes import CountingObserver, FakeDeletionSafety
from podstatus.testing.in_memory_pod_api import InMemoryPodApi
from tests.support.status_fleet import READY, RUNNING, Fleet, RecordedEvents, saying

pytestmark = pytest.mark.timeout(120)

SUCCEEDED = make_status("Succeeded", ended("app"), Ready="False")


def sending(**fields: Any) -> SyncPolicy:
    return SyncPolicy(parallel=ParallelSyncOptions(**fields))


# Requests


async def test_a_status_is_patched_without_reading_first() -> None:
    fleet = Fleet(["a"])
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[0], "one")
        await fleet.set_and_wait(fleet.pods[0], "two")
    assert fleet.calls() == ["patch a", "patch a"]
    assert fleet.message(fleet.pods[0]) == "two"


async def test_with_read_first_it_is_read_as_upstream_does() -> None:
    fleet = Fleet(["a"], policy=sending(read_first=True))
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[0], "one")
    assert fleet.calls() == ["get a", "patch a"]


async def test_a_watch_that_lags_costs_no_request() -> None:
    fleet = Fleet(["a"], deaf=True)
    async with fleet.running():
        for message in ("one", "two", "one", "one"):
            await fleet.set_and_wait(fleet.pods[0], message)
        assert fleet.calls() == ["patch a"] * 3
        assert fleet.message(fleet.pods[0]) == "one"
        await fleet.clock.advance(15)  # a full sync, which sees the old copy
    assert fleet.calls() == []


async def test_a_watch_that_does_not_come_for_a_minute_is_not_trusted() -> None:
    fleet = Fleet(["a"], deaf=True)
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[0], "ours")
        fleet.api.patch("default", "a", {"status": {"message": "theirs"}})
        await fleet.clock.advance(75)
    assert fleet.calls() == ["patch a", "get a", "patch a"]
    assert fleet.message(fleet.pods[0]) == "ours"


async def test_versions_that_are_no_numbers_make_us_ask() -> None:
    fleet = Fleet(["a"], versions=False)
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[0], "one")
        fleet.api.patch("default", "a", {"status": {"message": "theirs"}})
        await fleet.clock.advance(10)
    assert fleet.calls() == ["get a", "patch a", "get a", "patch a"]
    assert fleet.message(fleet.pods[0]) == "one"


async def test_a_foreign_write_is_undone_by_the_reconcile_without_reading() -> None:
    fleet = Fleet(["a"])
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[0], "ours")
        theirs = {"message": "theirs", "conditions": [{"type": "x", "status": "True"}]}
        fleet.api.patch("default", "a", {"status": theirs})
        await fleet.clock.advance(10)
    assert fleet.calls() == ["patch a", "patch a"]
    assert fleet.message(fleet.pods[0]) == "ours"
    assert "x" in [c.type for c in fleet.stored(fleet.pods[0]).status.conditions or ()]


class CuttingApi(InMemoryPodApi):
    """Applies a patch without a response, when `cuts` is set."""

    cuts = False

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        pod = await super().patch_pod_status(namespace, name, patch)
        if self.cuts:
            self.cuts = False
            raise UnavailableError("cut off")
        return pod


async def test_a_patch_that_was_taken_but_not_answered_is_not_forgotten() -> None:
    fleet = Fleet(["a"])
    api = CuttingApi(*fleet.pods)  # without a watch
    api.cuts = True
    fleet.directory.update_pod(api.pods()[0])
    fleet.manager = StatusManager(api, fleet.directory, fleet.safety, clock=fleet.clock)
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[0], "", seconds=2)
        api.cuts = True
        await fleet.set_and_wait(fleet.pods[0], "lost?")
        fleet.set(fleet.pods[0], "")  # the last response
        await fleet.clock.advance(2)
    stored = api.pod("default", "a")
    assert stored is not None
    assert stored.status.message == ""


class LateApi(InMemoryPodApi):
    """Does not answer a patch, and applies it just before the next one."""

    def __init__(self, *pods: Pod, watcher: PodManager) -> None:
        super().__init__(*pods, watcher=watcher)
        self.is_silent = False
        self._late: bytes | None = None

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        if self.is_silent:
            self.is_silent, self._late = False, patch
            raise UnavailableError("timed out")
        if self._late is not None:
            self.patch(namespace, name, decode_json(self._late, dict[str, Any]))
            self._late = None
        return await super().patch_pod_status(namespace, name, patch)


def late_fleet(**options: Any) -> tuple[Fleet, LateApi]:
    fleet = Fleet(["a"])
    api = LateApi(*fleet.pods, watcher=fleet.directory)
    fleet.manager = StatusManager(
        api, fleet.directory, fleet.safety, clock=fleet.clock, policy=sending(**options)
    )
    return fleet, api


async def send_after_timeout(fleet: Fleet, api: LateApi) -> PodStatus:
    """A patch that makes the pod ready has no response; then it is not ready, with a message."""
    await fleet.set_and_wait(fleet.pods[0], "")
    api.is_silent = True
    await fleet.set_and_wait(fleet.pods[0], "", READY)
    fleet.set(fleet.pods[0], "not any more")
    api.calls.clear()
    await fleet.clock.advance(2)
    stored = api.pod("default", "a")
    assert stored is not None
    return stored.status


def is_ready(status: PodStatus) -> bool:
    return is_condition_true(status.conditions, "Ready")


async def test_a_patch_that_is_applied_late_is_not_mixed_with_the_next_one() -> None:
    fleet, api = late_fleet()
    async with fleet.running():
        status = await send_after_timeout(fleet, api)
        assert (status.message, is_ready(status)) == ("not any more", False)
        assert status.container_statuses == RUNNING.container_statuses
        assert [(c.verb, c.code) for c in api.calls] == [
            ("get", None),
            ("patch", 409),
            ("get", None),
            ("patch", None),
        ]
        api.calls.clear()
        await fleet.set_and_wait(fleet.pods[0], "as usual")
        assert [c.verb for c in api.calls] == ["patch"]
        assert b"resourceVersion" not in (api.calls[0].patch or b"")


async def test_without_the_precondition_two_statuses_are_mixed_until_the_full_sync() -> None:
    fleet, api = late_fleet(precondition_after_timeout=False)
    async with fleet.running():
        status = await send_after_timeout(fleet, api)
        assert (status.message, is_ready(status)) == ("not any more", True)
        await fleet.clock.advance(10)
        status = fleet.directory.pods()[0].status
        assert (status.message, is_ready(status)) == ("not any more", False)


async def test_a_server_that_changes_the_pod_before_each_patch_gets_two_of_them() -> None:
    fleet, api = late_fleet()
    read = api.get_pod

    async def read_and_change(namespace: str, name: str) -> Pod:
        pod = await read(namespace, name)
        api.patch(namespace, name, {"metadata": {"annotations": {"at": str(len(api.calls))}}})
        return pod

    api.get_pod = read_and_change  # type: ignore[method-assign]
    async with fleet.running():
        status = await send_after_timeout(fleet, api)
    assert status.message == "not any more"
    assert [(c.verb, c.code) for c in api.calls] == [
        ("get", None),
        ("patch", 409),
        ("get", None),
        ("patch", None),
    ]


# Concurrency


@pytest.mark.parametrize("in_flight", [1, 5, 32])
async def test_so_many_pods_are_in_flight_and_each_once(in_flight: int) -> None:
    fleet = Fleet(map(str, range(40)), round_trip=1, policy=sending(in_flight=in_flight))
    async with fleet.running():
        for message in ("one", "two", "three"):
            for pod in fleet.pods:
                fleet.set(pod, message)
            await fleet.clock.advance(0.3)
        await fleet.clock.advance(40 * 3 / in_flight + 3)
    assert (fleet.api.max_in_flight, fleet.api.max_per_pod) == (in_flight, 1)
    assert {fleet.message(pod) for pod in fleet.pods} == {"three"}


async def test_a_status_that_changes_under_way_follows_and_only_the_newest() -> None:
    fleet = Fleet(["a"], round_trip=1)
    async with fleet.running():
        for message in ("one", "two", "three", "four"):
            await fleet.set_and_wait(fleet.pods[0], message, seconds=0.2)
        await fleet.clock.advance(1)
        assert fleet.message(fleet.pods[0]) == "four"
        assert len(fleet.calls()) == 2
        await fleet.clock.advance(30)
    assert fleet.calls() == []


async def test_one_pod_that_hangs_does_not_keep_the_others_waiting() -> None:
    fleet = Fleet(["slow", "a", "b"])
    slow = asyncio.Event()

    class Hanging(InMemoryPodApi):
        async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
            if name == "slow":
                await slow.wait()
            return await super().patch_pod_status(namespace, name, patch)

    api = Hanging(*fleet.pods, watcher=fleet.directory)
    fleet.manager = StatusManager(api, fleet.directory, fleet.safety, clock=fleet.clock)
    async with fleet.running():
        for pod in fleet.pods:
            fleet.set(pod, "here")
        await fleet.clock.advance(60)
        assert [call.name for call in api.calls] == ["a", "b"]
        slow.set()
        await fleet.clock.advance(0)
        assert [call.name for call in api.calls] == ["a", "b", "slow"]


@pytest.mark.slow
async def test_a_hundred_thousand_updates_arrive_as_the_newest_of_each_pod() -> None:
    pods, steps, elapsed, round_trip = 200, 200, 2.0, 0.02
    fleet = Fleet(map(str, range(pods)), round_trip=round_trip, rounds=6)
    async with fleet.running():
        began = fleet.now()
        for step in range(steps):
            for number in range(500):
                fleet.set(fleet.pods[number % pods], f"{step} {number}")
            await fleet.clock.advance(elapsed / steps)
        while {fleet.message(pod) for pod in fleet.pods} != {
            f"{steps - 1} {number}" for number in range(300, 500)
        }:
            await fleet.clock.advance(round_trip)
            assert fleet.now() - began < elapsed + 1
        took = fleet.now() - began
    patches = fleet.calls()
    assert {call.split()[0] for call in patches} == {"patch"}
    assert len(patches) <= ParallelSyncOptions().in_flight * took / round_trip + pods
    assert fleet.api.max_in_flight == ParallelSyncOptions().in_flight


# Priorities


async def test_deletions_and_first_readiness_overtake_a_backlog_and_the_rest_arrives() -> None:
    backlog, round_trip = 5000, 0.01
    names = [*map(str, range(backlog)), "to-delete", "first-ready", "reconcile"]
    fleet = Fleet(names, round_trip=round_trip, rounds=5)
    *ordinary, doomed, newcomer, quiet = fleet.pods
    async with fleet.running():
        fleet.set(quiet, "ours")
        fleet.set(newcomer, "not ready")
        await fleet.set_and_wait(doomed, "ended", SUCCEEDED, seconds=1)
        fleet.api.request_deletion("default", "to-delete", at="2100-01-01T00:00:00Z")
        began = fleet.now()
        for pod in ordinary:
            fleet.set(pod, "backlog")
        await fleet.clock.advance(0)
        fleet.manager.terminate_pod(fleet.directory.pod_by_uid(doomed.uid) or doomed)
        fleet.set(newcomer, "ready", READY)
        latency = await latencies(fleet, began, doomed, newcomer, ordinary[-1])
    queue = backlog * round_trip / ParallelSyncOptions().in_flight
    assert (
        latency[doomed.name] <= 4 * round_trip
    )  # one pod after another: a patch if needed, then the delete
    assert latency[newcomer.name] <= 3 * round_trip
    assert queue <= latency[ordinary[-1].name] <= queue + 1


async def latencies(fleet: Fleet, began: float, *pods: Pod) -> dict[str, float]:
    """Return the seconds from the start until each pod's last call."""
    found: dict[str, float] = {}
    while len(found) < len(pods):
        await fleet.clock.advance(0.01)
        assert fleet.now() - began < 10
        for pod in pods:
            stored = fleet.api.pod("default", pod.name)
            if stored is None or stored.status.message in ("ready", "backlog"):
                found.setdefault(pod.name, fleet.now() - began)
    return found


async def test_without_priorities_no_pod_overtakes() -> None:
    fleet = Fleet(["a", "b", "new"], round_trip=1, policy=sending(in_flight=1, prioritize=False))
    async with fleet.running():
        for pod in fleet.pods:
            await fleet.set_and_wait(pod, "x", READY if pod.name == "new" else RUNNING)
        await fleet.clock.advance(4)
    assert fleet.calls() == ["patch a", "patch b", "patch new"]


async def test_readiness_overtakes_the_first_time_only() -> None:
    fleet = Fleet(["a", "b", "flapping"], round_trip=1, policy=sending(in_flight=1))
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[2], "x", READY, seconds=2)
        await fleet.set_and_wait(fleet.pods[2], "x", RUNNING, seconds=2)
        fleet.calls()
        for pod in fleet.pods:
            await fleet.set_and_wait(pod, "y", READY if pod.name == "flapping" else RUNNING)
        await fleet.clock.advance(4)
    assert fleet.calls() == ["patch a", "patch b", "patch flapping"]


async def test_a_final_status_overtakes_without_a_deletion_request() -> None:
    fleet = Fleet(["a", "b", "c"], round_trip=1, policy=sending(in_flight=1))
    async with fleet.running():
        for pod in fleet.pods:
            await fleet.set_and_wait(pod, "x")
        fleet.set(fleet.pods[2], "end", SUCCEEDED)
        fleet.manager.terminate_pod(fleet.pods[2])
        await fleet.clock.advance(4)
    assert fleet.calls() == ["patch a", "patch c", "patch b"]


async def test_a_stream_of_urgent_pods_does_not_starve_an_ordinary_one() -> None:
    fleet = Fleet(["plain", *map(str, range(80))], round_trip=1, policy=sending(in_flight=1))
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[1], "x", READY)
        fleet.set(fleet.pods[0], "plain")
        for number in range(2, 60):
            fleet.set(fleet.pods[number], "x", READY)
            await fleet.set_and_wait(fleet.pods[number + 1], "x", READY, seconds=1)
    names = [call.split()[1] for call in fleet.calls()]
    assert 28 <= names.index("plain") <= 33


# Replaced pods, missing pods, static pods


async def test_a_pod_that_was_replaced_by_another_of_its_name_is_dropped() -> None:
    fleet = Fleet(["a"], deaf=True)
    old = fleet.pods[0]
    async with fleet.running():
        await fleet.set_and_wait(old, "one")
        fleet.api.put(structs.replace(old, metadata=structs.replace(old.metadata, uid="new")))
        await fleet.set_and_wait(old, "two")
        assert fleet.calls() == ["patch a", "patch a 409", "get a"]
        assert fleet.manager.pod_status(old.uid) is None
        await fleet.clock.advance(400)
    assert fleet.calls() == []


async def test_a_conflict_is_read_and_sent_again_at_once() -> None:
    fleet = Fleet(["a"])
    fleet.api.fail("patch", "default", "a", code=409)
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[0], "one")
    assert fleet.calls() == ["patch a 409", "get a", "patch a"]
    assert fleet.observer.failures == {}


async def test_gone_is_remembered_until_the_watch_shows_the_pod() -> None:
    fleet = Fleet(["a"])
    async with fleet.running():
        fleet.api.remove("default", "a")
        for message in ("one", "two", "three"):
            await fleet.set_and_wait(fleet.pods[0], message, seconds=700)
        assert fleet.calls() == ["get a 404"]
        assert fleet.manager.pod_status(fleet.pods[0].uid) is not None
        fleet.api.put(fleet.pods[0])
        await fleet.clock.advance(10)
        assert fleet.calls() == ["get a", "patch a"]


async def test_a_pod_reported_gone_is_retried_when_the_watch_shows_it_again() -> None:
    fleet = Fleet(["a"], deaf=True)
    pod = fleet.pods[0]
    fleet.api.remove("default", "a")
    async with fleet.running():
        fleet.set(pod, "one")
        await fleet.clock.advance(200)  # the watch still shows it: the back-off grows
        fleet.directory.remove_pod(pod)
        await fleet.clock.advance(10)
        fleet.calls()
        fleet.api.put(pod)
        fleet.watch(pod)
        await fleet.clock.advance(10)
    assert fleet.calls() == ["get a", "patch a"]


async def test_a_static_pod_waits_for_its_mirror_and_then_goes_to_it() -> None:
    fleet = Fleet([])
    static, mirror = make_static_pod(), make_static_pod(mirror=True)
    fleet.directory.update_pod(static)
    async with fleet.running():
        await fleet.set_and_wait(static, "one", seconds=30)
        assert fleet.calls() == []
        fleet.api.put(mirror)
        await fleet.clock.advance(10)
        assert fleet.calls() == ["patch static"]
        assert dict(fleet.manager.sent_versions()) == {ApiUID(mirror.uid): 1}


async def test_what_failed_at_one_mirror_does_not_keep_the_next_one_waiting() -> None:
    fleet = Fleet([])
    static, mirror = make_static_pod(), make_static_pod(mirror=True)
    fleet.directory.update_pod(static)
    fleet.api.put(mirror)
    fleet.api.fail("patch", "kube-system", "static", code=422)
    async with fleet.running():
        await fleet.set_and_wait(static, "one", seconds=1)
        fleet.api.remove("kube-system", "static")
        fleet.api.put(make_static_pod(mirror=True, uid="mirror-2"))
        await fleet.clock.advance(10)
    assert fleet.calls() == ["patch static 422", "patch static"]


async def test_a_mirror_that_the_watch_has_not_shown_yet_is_waited_for() -> None:
    fleet = Fleet([])
    static, mirror = make_static_pod(), make_static_pod(mirror=True)
    api = InMemoryPodApi(mirror)
    fleet.directory.set_pods([static, *api.pods()])
    fleet.manager = StatusManager(api, fleet.directory, fleet.safety, clock=fleet.clock)
    async with fleet.running():
        # The static pod has changed, and its mirror pod was replaced immediately.
        api.remove(static.namespace, static.name)
        api.put(make_static_pod(mirror=True, uid="mirror-2"))
        fleet.manager.set_pod_status(static, saying("one"))
        await fleet.clock.advance(5)
        assert fleet.manager.pod_status(static.uid) is not None
        fleet.directory.remove_pod(mirror)
        fleet.directory.update_pod(await api.get_pod(static.namespace, static.name))
        await fleet.clock.advance(10)
        assert dict(fleet.manager.sent_versions()) == {ApiUID("mirror-2"): 1}


# Final statuses


async def test_a_terminal_phase_that_was_held_back_follows_with_a_reconcile() -> None:
    fleet = Fleet(["a"])
    pod = fleet.pods[0]
    fleet.safety.table[pod.uid] = True
    async with fleet.running():
        await fleet.set_and_wait(pod, "one")
        await fleet.set_and_wait(pod, "two", SUCCEEDED)
        assert fleet.stored(pod).status.phase == "Running"
        fleet.safety.table[pod.uid] = False
        await fleet.clock.advance(10)
        assert fleet.stored(pod).status.phase == "Succeeded"


@pytest.mark.parametrize("code", [409, 429, 500, 422])
async def test_a_deletion_that_fails_is_tried_again(code: int) -> None:
    fleet = Fleet(["a"])
    pod = fleet.pods[0]
    fleet.api.fail("delete", "default", "a", code=code, times=2)
    async with fleet.running():
        await fleet.set_and_wait(pod, "end", SUCCEEDED)
        fleet.api.request_deletion("default", "a", at="2100-01-01T00:00:00Z")
        fleet.manager.terminate_pod(fleet.directory.pod_by_uid(pod.uid) or pod)
        await fleet.clock.advance(700)
    assert fleet.api.pods() == []
    assert fleet.manager.entries() == {}
    assert [call for call in fleet.calls() if "delete" in call] == [
        f"delete a {code}",
        f"delete a {code}",
        "delete a",
    ]


async def test_a_deletion_that_failed_does_not_wait_for_the_watch() -> None:
    fleet = Fleet(["a"], deaf=True)
    pod = fleet.pods[0]
    fleet.api.request_deletion("default", "a", at="2100-01-01T00:00:00Z")
    fleet.api.fail("delete", "default", "a", code=500)
    async with fleet.running():
        fleet.set(pod, "end", SUCCEEDED)
        fleet.manager.terminate_pod(pod)
        await fleet.clock.advance(1)
        assert fleet.calls() == ["patch a", "delete a 500", "delete a"]


async def test_a_pod_is_deleted_when_the_watch_shows_the_request() -> None:
    fleet = Fleet(["a"])
    pod = fleet.pods[0]
    async with fleet.running():
        fleet.set(pod, "end", SUCCEEDED)
        fleet.manager.terminate_pod(pod)
        await fleet.clock.advance(0)
        fleet.calls()
        fleet.api.request_deletion("default", "a", at="2100-01-01T00:00:00Z")
        await fleet.clock.advance(10)
    assert fleet.calls() == ["delete a"]


# Failures


async def test_a_pod_that_failed_is_tried_again_with_what_is_newest_then() -> None:
    fleet = Fleet(["a"])
    fleet.api.fail("patch", "default", "a", code=500)
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[0], "one")
        await fleet.set_and_wait(fleet.pods[0], "two")
        assert fleet.calls() == ["patch a 500"]
        await fleet.clock.advance(1)
        assert fleet.calls() == ["get a", "patch a"]
        assert fleet.message(fleet.pods[0]) == "two"


async def test_a_clock_that_rounds_does_not_delay_a_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    for chance in range(100):
        monkeypatch.setattr(random, "random", lambda chance=chance: chance / 70_001)
        fleet = Fleet(["a"])
        fleet.api.fail("patch", "default", "a", code=500)
        async with fleet.running():
            await fleet.set_and_wait(fleet.pods[0], "one", seconds=1)
            assert fleet.calls() == ["patch a 500", "get a", "patch a"]


async def test_without_waits_what_failed_goes_with_the_next_batch_as_upstream() -> None:
    zero = sending(
        initial_retry_seconds=0, max_retry_seconds=0, rejected_retry_seconds=0, circuit_after=0
    )
    fleet = Fleet(["a", "b"], policy=zero)
    fleet.api.fail("patch", "default", "a", code=422)
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[0], "one", seconds=5)
        assert fleet.calls() == ["patch a 422"]
        await fleet.set_and_wait(fleet.pods[1], "one")
        assert sorted(fleet.calls()) == ["get a", "patch a", "patch b"]


class Patient(InMemoryPodApi):
    """Returns Retry-After for the first call."""

    asked = False

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        if not self.asked:
            self.asked = True
            raise BusyError("later", retry_after=20)
        return await super().patch_pod_status(namespace, name, patch)


async def test_a_server_that_asks_for_patience_gets_it_and_is_not_read() -> None:
    fleet = Fleet(["a"])
    api = Patient(*fleet.pods, watcher=fleet.directory)
    fleet.manager = StatusManager(api, fleet.directory, fleet.safety, clock=fleet.clock)
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[0], "one", seconds=19)
        assert api.calls == []
        await fleet.clock.advance(1)
        assert [call.verb for call in api.calls] == ["patch"]


async def test_a_rejected_status_is_reported_counted_and_retried_every_five_minutes() -> None:
    fleet = Fleet(["a"], policy=None)
    fleet.api.fail("patch", "default", "a", code=422, times=2)
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[0], "one", seconds=299)
        assert fleet.calls() == ["patch a 422"]
        await fleet.clock.advance(1)
        assert fleet.calls() == ["get a", "patch a 422"]
        await fleet.clock.advance(300)
        assert fleet.calls() == ["get a", "patch a"]
    assert fleet.observer.failures == {"rejected": 2}
    (reference, reason, message), _ = fleet.recorder.events
    assert (reference.namespace, reference.name, reference.uid) == ("default", "a", "uid-a")
    assert reason == "StatusRejected"
    assert message == "Status was rejected: patch pod default/a: HTTP 422"


async def test_a_rejected_status_is_tried_at_once_when_it_changes() -> None:
    fleet = Fleet(["a"])
    fleet.api.fail("patch", "default", "a", code=422)
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[0], "wrong")
        await fleet.set_and_wait(fleet.pods[0], "right")
        assert fleet.message(fleet.pods[0]) == "right"


async def test_who_is_not_let_in_for_a_while_is_not_taken_for_rejected() -> None:
    fleet = Fleet(["a"])
    fleet.api.fail("patch", "default", "a", code=403, times=3)
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[0], "one", seconds=8)
        assert fleet.message(fleet.pods[0]) == "one"
    assert fleet.observer.failures == {"denied": 3}
    assert fleet.recorder.events == []


class FailingEvents(RecordedEvents):
    def warn(self, *_: object) -> None:
        raise OSError("no sink")


async def test_events_that_cannot_be_recorded_stop_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fleet = Fleet(["a", "b"])
    fleet.recorder = FailingEvents()
    fleet.restart()
    fleet.api.fail("patch", "default", "a", code=422)
    async with fleet.running() as loop:
        for pod in fleet.pods:
            fleet.set(pod, "one")
        await fleet.clock.advance(301)
        assert not loop.done()
        assert [fleet.message(pod) for pod in fleet.pods] == ["one", "one"]
    assert "cannot record event: pod=default/a uid=uid-a" in caplog.text


class Moody(PodManager):
    """Fails in some of its calls."""

    broken = ""

    def translate_pod_uid(self, uid: str) -> Any:
        self._try("translate_pod_uid")
        return super().translate_pod_uid(uid)

    def pod_by_uid(self, uid: str) -> Pod | None:
        self._try("pod_by_uid")
        return super().pod_by_uid(uid)

    def uid_translations(self) -> Any:
        self._try("uid_translations")
        return super().uid_translations()

    def _try(self, method: str) -> None:
        if self.broken == method:
            raise OSError("no directory")


@pytest.mark.parametrize("method", ["translate_pod_uid", "pod_by_uid", "uid_translations"])
@pytest.mark.parametrize("when", ["before", "waiting"])
async def test_a_directory_that_raises_loses_no_status(method: str, when: str) -> None:
    fleet = Fleet(["a"], round_trip=0.5)
    directory = Moody([fleet.stored(fleet.pods[0])])
    fleet.directory = directory
    fleet.restart()
    fleet.api.fail("patch", "default", "a", code=500)
    async with fleet.running() as loop:
        if when == "before":
            directory.broken = method
        await fleet.set_and_wait(fleet.pods[0], "one", seconds=0.1)
        directory.broken = method
        await fleet.clock.advance(30)
        directory.broken = ""
        await fleet.clock.advance(60)
        assert not loop.done()
        assert fleet.message(fleet.pods[0]) == "one"


async def test_what_was_not_looked_at_is_looked_at_with_the_next_change_of_any_pod() -> None:
    fleet = Fleet(["a", "b"])
    directory = Moody(fleet.api.pods())
    fleet.directory = directory
    fleet.restart()
    async with fleet.running():
        directory.broken = "uid_translations"
        await fleet.set_and_wait(fleet.pods[0], "one", seconds=1)
        directory.broken = ""
        await fleet.set_and_wait(fleet.pods[1], "one")
        assert fleet.calls() == ["patch a", "patch b"]


# An outage


async def test_in_an_outage_a_few_pods_look_for_the_server_and_then_all_go() -> None:
    fleet = Fleet(map(str, range(100)))
    for pod in fleet.pods:
        fleet.api.fail("patch", "default", pod.name, code=503, times=1000)
        fleet.api.fail("get", "default", pod.name, code=503, times=1000)
    async with fleet.running():
        for pod in fleet.pods:
            fleet.set(pod, "one")
        await fleet.clock.advance(60)
        first, fleet.api.calls = len(fleet.api.calls), []
        # First all pods; then rounds of 1/8, with a back-off of 0.5 s to 5 s.
        assert first <= ParallelSyncOptions().in_flight + 4 * 25
        await fleet.clock.advance(600)
        assert len(fleet.calls()) <= 4 * 600 / 2.5
        fleet.api.stop_failing()
        await fleet.clock.advance(11)
        assert {fleet.message(pod) for pod in fleet.pods} == {"one"}


async def test_without_a_circuit_every_pod_looks_for_the_server() -> None:
    fleet = Fleet(map(str, range(100)), policy=sending(circuit_after=0))
    for pod in fleet.pods:
        fleet.api.fail("patch", "default", pod.name, code=503)
    async with fleet.running():
        for pod in fleet.pods:
            fleet.set(pod, "one")
        await fleet.clock.advance(0)
        assert len(fleet.calls()) == 100


# Wall-clock jumps


@pytest.mark.parametrize("hours", [-24, 24])
async def test_a_clock_that_is_set_does_not_stop_retries_nor_hurry_them_on(hours: int) -> None:
    fleet = Fleet(["a", "b"])
    for name in "ab":
        fleet.api.fail("patch", "default", name, code=500, times=2)
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[0], "one", seconds=0.1)
        fleet.clock.step(hours * 3600)
        await fleet.set_and_wait(fleet.pods[1], "one", seconds=20)
        assert {fleet.message(pod) for pod in fleet.pods} == {"one"}
    assert len(fleet.calls()) <= 12


# Garbage collection


@pytest.mark.parametrize("late", [False, True])
async def test_pods_that_are_gone_leave_nothing_behind(*, late: bool) -> None:
    fleet = Fleet(map(str, range(30)))
    for number, code in enumerate((404, 409, 422, 429, 500)):
        fleet.api.fail("patch", "default", str(number), code=code, times=9)
    async with fleet.running():
        for pod in fleet.pods:
            fleet.set(pod, "one", READY)
        await fleet.clock.advance(0.1)
        for pod in fleet.pods:
            fleet.directory.remove_pod(pod)
        await fleet.clock.advance(1000 if late else 0)  # removed pods are not checked
        fleet.manager.remove_orphaned_statuses(set())
        await fleet.clock.advance(1000)
        assert fleet.manager.sync_counts() == SyncCounts()


async def test_a_deletion_that_meets_another_pod_of_the_name_makes_us_ask() -> None:
    fleet = Fleet(["a"], deaf=True)
    pod = fleet.pods[0]
    async with fleet.running():
        fleet.set(pod, "end", SUCCEEDED)
        fleet.manager.terminate_pod(pod)
        await fleet.clock.advance(1)
        fleet.api.request_deletion("default", "a", at="2100-01-01T00:00:00Z")
        fleet.watch(pod)
        fleet.api.remove("default", "a")
        fleet.api.put(make_pod("a", uid="another"))  # not yet in the watch
        fleet.calls()
        await fleet.clock.advance(30)
    assert fleet.calls() == ["delete a 409", "get a"]
    assert not fleet.manager.entries()


async def test_a_patch_of_a_new_mirror_that_was_not_answered_leaves_doubt() -> None:
    fleet = Fleet([])
    static, mirror = make_static_pod(), make_static_pod(mirror=True)
    api = CuttingApi(mirror)
    fleet.directory.set_pods([static, *api.pods()])
    fleet.manager = StatusManager(api, fleet.directory, fleet.safety, clock=fleet.clock)
    async with fleet.running():
        fleet.manager.set_pod_status(static, saying("one"))
        await fleet.clock.advance(0)
        new = structs.replace(mirror.metadata, uid="mirror-2")
        api.remove(static.namespace, static.name)
        api.put(structs.replace(mirror, metadata=new))
        read = api.get_pod

        async def read_and_watch(namespace: str, name: str) -> Pod:
            pod = await read(namespace, name)
            fleet.directory.update_pod(pod)
            return pod

        api.get_pod = read_and_watch  # type: ignore[method-assign]
        api.cuts = True
        fleet.manager.set_pod_status(static, saying("two", READY))
        await fleet.clock.advance(0)
        api.calls.clear()
        await fleet.clock.advance(3)
        assert api.calls[0].verb == "get"


class CancellingApi(InMemoryPodApi):
    """Cancels the calling task, once."""

    cancels = True

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        task = asyncio.current_task()
        if self.cancels and task is not None:
            self.cancels = False
            task.cancel()
            await asyncio.sleep(0)
        return await super().patch_pod_status(namespace, name, patch)


async def test_a_client_that_cancels_its_task_does_not_keep_a_pod_under_way_for_ever() -> None:
    fleet = Fleet(["a"])
    api = CancellingApi(*fleet.pods)
    fleet.manager = StatusManager(api, fleet.directory, fleet.safety, clock=fleet.clock)
    async with fleet.running():
        await fleet.set_and_wait(fleet.pods[0], "news", seconds=11)
        stored = api.pod("default", "a")
        assert stored is not None
        assert stored.status.message == "news"


async def test_a_client_that_never_waits_lets_others_have_their_turn() -> None:
    pods = [make_pod(f"pod-{number}") for number in range(100)]
    directory = PodManager(pods)
    api = InMemoryPodApi(*pods, watcher=directory)
    manager = StatusManager(api, directory, FakeDeletionSafety(), policy=sending(in_flight=1))
    for pod in pods:
        manager.set_pod_status(pod, RUNNING)
    syncing = asyncio.create_task(manager.sync_batch(full=False))
    seen = [0]
    while not syncing.done():
        await asyncio.sleep(0)
        seen.append(len(api.calls))
    assert seen[-1] == len(pods)
    assert max(after - before for before, after in pairwise(seen)) <= 16


class LatencyObserver(CountingObserver):
    def __init__(self) -> None:
        super().__init__()
        self.pods: list[tuple[str, str, str, float]] = []

    def pod_synced(self, uid: PodUID, namespace: str, name: str, duration_seconds: float) -> None:
        self.pods.append((uid, namespace, name, duration_seconds))


async def test_pods_in_flight_and_rejected_are_counted_and_latencies_are_observed() -> None:
    fleet = Fleet(["good", "bad"], round_trip=3)
    fleet.observer = observer = LatencyObserver()
    fleet.restart()
    fleet.api.fail("patch", "default", "bad", code=422)
    async with fleet.running():
        for pod in fleet.pods:
            fleet.set(pod, "")
        await fleet.clock.advance(1)
        assert fleet.manager.sync_counts().in_flight == 2
        await fleet.clock.advance(2)
        counts = fleet.manager.sync_counts()
    assert (counts.in_flight, counts.quarantined, counts.outbox) == (0, 1, 0)
    assert observer.pods == [("uid-good", "default", "good", 3.0)]
    assert observer.sync_durations == [3.0]
