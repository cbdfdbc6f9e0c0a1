"""The end of the loop, and of a process: nothing is acknowledged by halves, nothing is lost."""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from podstatus.kube.api_errors import UnavailableError
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import ApiUID, Pod, PodUID
from podstatus.status.manager import StatusManager
from podstatus.status.policy import ParallelSyncOptions, SyncPolicy
from podstatus.status.ports import OutboxEntry
from podstatus.status.store import StatusStore
from podstatus.status.sync.build_syncer import build_syncer
from podstatus.status.sync.context import SyncContext
from podstatus.status.sync.outbox_writer import OutboxWriter
from podstatus.testing.builders import ended, make_pod, make_status, running
from podstatus.testing.clock import run_ready_tasks
from podstatus.testing.in_memory_pod_api import InMemoryPodApi
from tests.status.sync.parallel_scene import SUCCEEDED, HangingOutbox
from tests.support.status_fleet import READY, RUNNING, Fleet, MemoryOutbox

pytestmark = pytest.mark.timeout(120)

NAMES = list(map(str, range(50)))


async def stopped(fleet: Fleet, loop: asyncio.Task[None], drain: float) -> None:
    """Stop the loop, and advance the clock."""
    fleet.manager.stop(drain=drain)
    await fleet.clock.advance(drain)
    await asyncio.wait_for(loop, 60)


# Stop


async def test_a_stop_sends_the_whole_backlog_if_there_is_time() -> None:
    fleet = Fleet(NAMES, round_trip=1)
    async with fleet.running() as loop:
        for pod in fleet.pods:
            fleet.set(pod, "last")
        await stopped(fleet, loop, drain=5)
    assert {fleet.message(pod) for pod in fleet.pods} == {"last"}


@pytest.mark.parametrize("moment", [0.0, 0.2, 0.5, 0.7, 1.0, 1.2, 1.5, 2.1])
@pytest.mark.parametrize("drain", [0.0, 0.4])
async def test_what_a_stop_leaves_unsent_the_next_run_sends(moment: float, drain: float) -> None:
    fleet = Fleet(NAMES, round_trip=1)
    async with fleet.running() as loop:
        for pod in fleet.pods:
            fleet.set(pod, "last")
        await fleet.clock.advance(moment)
        await stopped(fleet, loop, drain=drain)
    await run_ready_tasks()
    for uid, version in fleet.manager.sent_versions().items():
        pod = next(pod for pod in fleet.pods if str(pod.uid) == uid)
        assert (fleet.message(pod), version) == ("last", 1)
    async with fleet.running():
        await fleet.clock.advance(4.5)  # interrupted pods are read first
        assert {fleet.message(pod) for pod in fleet.pods} == {"last"}
        assert len(fleet.manager.sent_versions()) == len(NAMES)


async def test_a_stop_before_the_first_step_of_a_sync_leaves_the_pod_free() -> None:
    fleet, gates = Fleet(["a"]), FeatureGates()
    statuses = StatusStore(
        fleet.directory, None, on_changed=lambda: None, clock=fleet.clock, gates=gates
    )
    context = SyncContext(
        client=fleet.api,
        pod_manager=fleet.directory,
        safety=fleet.safety,
        startup_latency=None,
        allocations=None,
        events=None,
        recompute_status=fleet.recompute_status,
        clock=fleet.clock,
        gates=gates,
        policy=SyncPolicy(),
    )
    syncer = build_syncer(context, statuses, OutboxWriter(None))
    statuses.update(fleet.pods[0], RUNNING, force=False)
    async with syncer:
        await syncer.sync_batch(full=False)  # and ends immediately
    assert fleet.calls() == []
    async with syncer:
        await syncer.sync_batch(full=False)
        await syncer.wait_idle()
    assert fleet.calls() == ["patch a"]


async def test_a_run_that_is_cancelled_loses_nothing() -> None:
    fleet = Fleet(NAMES, round_trip=1)
    for _ in range(6):
        loop = asyncio.create_task(fleet.manager.run())
        for pod in fleet.pods:
            fleet.set(pod, "last")
        await fleet.clock.advance(0.7)
        loop.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loop
    async with fleet.running():
        await fleet.clock.advance(4.5)
        assert {fleet.message(pod) for pod in fleet.pods} == {"last"}


async def test_a_patch_whose_answer_a_stop_cut_off_is_not_taken_for_unsent() -> None:
    fleet = Fleet(["a"], round_trip=1, deaf=True)
    async with fleet.running() as loop:
        fleet.set(fleet.pods[0], "arrives")
        await fleet.clock.advance(0.7)  # applied, but the response has not arrived
        await stopped(fleet, loop, drain=0)
    assert fleet.message(fleet.pods[0]) == "arrives"
    fleet.set(fleet.pods[0], "")  # the watch still shows it
    async with fleet.running():
        await fleet.clock.advance(3)
        assert fleet.message(fleet.pods[0]) == ""


async def test_what_failed_gets_a_last_chance_when_the_loop_stops() -> None:
    fleet = Fleet(NAMES)
    for pod in fleet.pods:
        fleet.api.fail("patch", "default", pod.name, code=503)
    async with fleet.running() as loop:
        for pod in fleet.pods:
            fleet.set(pod, "last")
        await fleet.clock.advance(0)
        assert fleet.manager.sent_versions() == {}
        fleet.api.stop_failing()
        await stopped(fleet, loop, drain=1)
    assert {fleet.message(pod) for pod in fleet.pods} == {"last"}


async def test_a_server_that_is_away_does_not_hold_up_a_stop() -> None:
    fleet = Fleet(NAMES)
    for pod in fleet.pods:
        for verb in ("get", "patch"):
            fleet.api.fail(verb, "default", pod.name, code=503, times=1000)
    async with fleet.running() as loop:
        for pod in fleet.pods:
            fleet.set(pod, "last")
        await fleet.clock.advance(30)
        fleet.calls()
        fleet.manager.stop(drain=5)
        await asyncio.wait_for(loop, 60)
    assert len(fleet.calls()) <= 8


class Stubborn(InMemoryPodApi):
    """Treats its cancellation as an ordinary failure."""

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise UnavailableError("cut off") from None
        return await super().patch_pod_status(namespace, name, patch)


async def test_a_client_that_makes_a_failure_of_its_cancellation_does_not_stay() -> None:
    fleet = Fleet(["a"])
    api = Stubborn(*fleet.pods, watcher=fleet.directory)
    fleet.manager = StatusManager(api, fleet.directory, fleet.safety, clock=fleet.clock)
    async with fleet.running() as loop:
        await fleet.set_and_wait(fleet.pods[0], "one")
        await stopped(fleet, loop, drain=0)
    assert fleet.manager.sent_versions() == {}


async def test_a_pod_that_waits_after_a_failure_is_tried_by_the_next_run_too() -> None:
    fleet = Fleet(["a"])
    fleet.api.fail("patch", "default", "a", code=422)
    async with fleet.running() as loop:
        await fleet.set_and_wait(fleet.pods[0], "one")
        await stopped(fleet, loop, drain=0)
    async with fleet.running():
        await fleet.clock.advance(299)
        assert fleet.manager.sent_versions() == {}
        await fleet.clock.advance(1)
        assert fleet.message(fleet.pods[0]) == "one"


# Without the loop


async def test_a_batch_by_hand_waits_for_all_it_has_begun() -> None:
    fleet = Fleet(NAMES, round_trip=1)
    for pod in fleet.pods:
        fleet.set(pod, "one", READY)
    batch = asyncio.create_task(fleet.manager.sync_batch(full=False))
    await fleet.clock.advance(3)
    assert await batch == len(NAMES)
    assert {fleet.message(pod) for pod in fleet.pods} == {"one"}
    assert await fleet.manager.sync_batch(full=False) == 0


async def test_a_batch_by_hand_leaves_those_alone_that_wait_after_a_failure() -> None:
    fleet = Fleet(["a"])
    fleet.api.fail("patch", "default", "a", code=500)
    fleet.set(fleet.pods[0], "one")
    assert await fleet.manager.sync_batch(full=False) == 1
    assert await fleet.manager.sync_batch(full=True) == 0
    await fleet.clock.advance(1)
    assert await fleet.manager.sync_batch(full=True) == 1
    assert fleet.calls() == ["patch a 500", "get a", "patch a"]


# The outbox


async def patiently(fleet: Fleet, seconds: float = 0) -> None:
    """Advance the clock, and let threads run."""
    await fleet.clock.advance(seconds)
    for _ in range(20):
        await asyncio.to_thread(int)
        await run_ready_tasks(5)


def last_status(name: str, message: str) -> OutboxEntry:
    """Return an undelivered entry from before a restart."""
    status = structs.replace(SUCCEEDED, message=message)
    return OutboxEntry(uid=PodUID(f"uid-{name}"), namespace="default", name=name, status=status)


class LoggingApi(InMemoryPodApi):
    """Logs patches to the outbox's log, to check the order."""

    def __init__(self, outbox: MemoryOutbox, *pods: Pod, **options: Any) -> None:
        super().__init__(*pods, **options)
        self.outbox = outbox

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        self.outbox.log.append(f"patch {name}")
        return await super().patch_pod_status(namespace, name, patch)


async def test_a_last_status_is_kept_before_it_is_sent_and_dropped_afterwards() -> None:
    outbox, pod = MemoryOutbox(), make_pod("a", restart_policy="Never")
    fleet = Fleet([], outbox=outbox)
    fleet.pods = [pod]
    api = LoggingApi(outbox, pod)
    fleet.directory.update_pod(api.pods()[0])
    fleet.manager = StatusManager(
        api, fleet.directory, fleet.safety, clock=fleet.clock, outbox=outbox
    )
    async with fleet.running():
        fleet.set(pod, "not the last")
        await patiently(fleet)
        fleet.set(pod, "end", SUCCEEDED)
        fleet.manager.terminate_pod(pod)
        await patiently(fleet)
        await patiently(fleet, 30)  # full syncs: the watch is deaf, and shows the old status
    assert outbox.log == ["patch a", "keep a", "patch a", "drop uid-a"]
    assert outbox.kept == {}


async def test_a_last_status_survives_a_crash_and_passes_the_normal_merge() -> None:
    fleet = Fleet(["a"], outbox=MemoryOutbox())
    pod = fleet.pods[0]
    fleet.api.fail("patch", "default", "a", code=503, times=99)
    async with fleet.running():
        fleet.set(pod, "end", SUCCEEDED)
        fleet.manager.terminate_pod(pod)
        await patiently(fleet, 3)
    assert fleet.outbox is not None
    assert [kept.status.message for kept in fleet.outbox.kept.values()] == ["end"]
    fleet.api.stop_failing()
    gate = {"type": "example.com/lb", "status": "True"}
    fleet.api.patch("default", "a", {"status": {"conditions": [gate]}})

    manager = fleet.restart()
    async with fleet.running():
        await patiently(fleet, 1)
        assert manager.entries()[pod.uid].finished
        stored = fleet.stored(pod)
    assert (stored.status.phase, stored.status.message) == ("Succeeded", "end")
    assert "example.com/lb" in [c.type for c in stored.status.conditions or ()]
    assert fleet.outbox.kept == {}


async def test_a_probe_that_finds_its_pod_gone_removes_the_outbox_entry() -> None:
    policy = SyncPolicy(parallel=ParallelSyncOptions(circuit_after=1))
    fleet = Fleet(["a"], outbox=MemoryOutbox(), policy=policy)
    pod, outbox = fleet.pods[0], fleet.outbox
    assert outbox is not None
    fleet.api.fail("patch", "default", "a", code=503)
    fleet.api.fail("get", "default", "a", code=404, times=99)
    async with fleet.running():
        fleet.set(pod, "end", SUCCEEDED)
        fleet.manager.terminate_pod(pod)
        await patiently(fleet, 0.1)
        assert set(outbox.kept) == {pod.uid}
        await patiently(fleet, 3)
        assert outbox.kept == {}


async def test_a_status_reported_before_the_seed_is_known_better() -> None:
    fleet = Fleet(["a"], outbox=MemoryOutbox())
    pod, outbox = fleet.pods[0], fleet.outbox
    assert outbox is not None
    outbox.store(last_status("a", "old"))
    fleet.set(pod, "new")
    async with fleet.running():
        await patiently(fleet)
    assert fleet.message(pod) == "new"


async def test_the_outbox_lets_go_of_pods_that_are_gone() -> None:
    outbox = MemoryOutbox()
    for name in ("gone", "orphan", "replaced"):
        outbox.store(last_status(name, "end"))
    fleet = Fleet(["orphan"], outbox=outbox)
    fleet.api.put(make_pod("replaced", uid="another"))
    fleet.api.fail("patch", "default", "orphan", code=422, times=99)
    async with fleet.running():
        await patiently(fleet)
        assert set(outbox.kept) == {"uid-orphan"}
        fleet.manager.remove_orphaned_statuses(set())
        await patiently(fleet, 11)
    assert outbox.kept == {}


async def test_a_phase_that_is_held_back_has_not_arrived() -> None:
    fleet = Fleet(["a"], outbox=MemoryOutbox())
    pod, outbox = fleet.pods[0], fleet.outbox
    assert outbox is not None
    fleet.safety.table[pod.uid] = True
    async with fleet.running():
        fleet.set(pod, "end", SUCCEEDED)
        fleet.manager.terminate_pod(pod)
        await patiently(fleet)
        assert fleet.stored(pod).status.phase == ""
        assert set(outbox.kept) == {pod.uid}
        fleet.safety.table[pod.uid] = False
        await patiently(fleet, 10)
        assert fleet.stored(pod).status.phase == "Succeeded"
    assert outbox.kept == {}


async def test_an_end_that_cannot_be_sent_is_kept_though_the_pod_lives_on() -> None:
    fleet = Fleet(["a"], outbox=MemoryOutbox())
    pod, outbox = fleet.pods[0], fleet.outbox
    assert outbox is not None
    async with fleet.running():
        fleet.api.fail("patch", "default", "a", code=503, times=1)
        fleet.set(pod, "no end", make_status("Running", running("app")))
        await patiently(fleet, 3)
        fleet.set(pod, "sent", make_status("Running", ended("app", 3)))
        await patiently(fleet, 3)
        assert outbox.log == []  # a status that can be sent is not stored
        fleet.api.fail("patch", "default", "a", code=503, times=99)
        fleet.set(pod, "first", make_status("Running", ended("app", 3)))
        await patiently(fleet, 3)
        fleet.set(pod, "second", make_status("Running", ended("app", 3)))
        await patiently(fleet, 3)
        (kept,) = outbox.kept.values()
        assert (kept.status.message, kept.finished) == ("second", False)
        fleet.api.stop_failing()
        await patiently(fleet, 60)
        assert fleet.message(pod) == "second"
    assert outbox.kept == {}


async def test_a_newer_end_that_was_kept_meanwhile_stays_when_an_older_one_arrives() -> None:
    fleet = Fleet(["a"], outbox=MemoryOutbox(), round_trip=1)
    pod, outbox = fleet.pods[0], fleet.outbox
    assert outbox is not None

    def kept() -> list[str]:
        return [it.status.message for it in outbox.kept.values()]

    async with fleet.running():
        fleet.api.fail("patch", "default", "a", code=503)
        fleet.set(pod, "older", make_status("Running", ended("app", 3)))
        while len(fleet.api.times) < 2:  # the second attempt is in flight
            await patiently(fleet, 0.1)
        fleet.set(pod, "newer", make_status("Running", ended("app", 3)))
        await patiently(fleet)
        assert kept() == ["newer"]
        while not fleet.manager.sent_versions():
            await patiently(fleet, 0.1)
        assert (fleet.message(pod), kept()) == ("older", ["newer"])
        await patiently(fleet, 3)
        assert (fleet.message(pod), kept()) == ("newer", [])


class CuriousApi(LoggingApi):
    """Logs reads of managed fields."""

    async def managed_fields(self, namespace: str, name: str, *, uid: ApiUID) -> Any:
        self.outbox.log.append(f"ask {name}")
        return ()


async def test_a_last_status_is_kept_before_it_is_asked_who_else_wrote() -> None:
    outbox, pod = MemoryOutbox(), make_pod("a", restart_policy="Never")
    fleet = Fleet([], outbox=outbox)
    api = CuriousApi(outbox, pod, watcher=fleet.directory, versions=True)
    fleet.pods, fleet.api = [pod], api  # type: ignore[assignment]
    fleet.watch(pod)
    fleet.manager = StatusManager(
        api, fleet.directory, fleet.safety, clock=fleet.clock, outbox=outbox
    )
    async with fleet.running():
        fleet.set(pod, "not the last", READY)
        await patiently(fleet)
        api.patch("default", "a", {"status": {"message": "of another client"}})
        fleet.manager.pod_observed(pod.uid)
        fleet.set(pod, "end", SUCCEEDED)
        fleet.manager.terminate_pod(pod)
        await patiently(fleet)
    assert outbox.log == ["patch a", "keep a", "ask a", "patch a", "drop uid-a"]


async def test_what_an_earlier_life_knew_is_not_sent_but_stays_until_more_is_said() -> None:
    fleet = Fleet(["a"], outbox=MemoryOutbox())
    pod, outbox = fleet.pods[0], fleet.outbox
    assert outbox is not None
    status = make_status("Running", ended("app", 3))
    outbox.store(structs.replace(last_status("a", "old"), status=status, finished=False))
    manager = fleet.restart()
    async with fleet.running():
        await patiently(fleet, 30)
        assert manager.pod_status(pod.uid) is None
        assert manager.latest_status(pod) == status
        assert set(outbox.kept) == {pod.uid}
        fleet.set(pod, "new", make_status("Running", ended("app", 3)))
        await patiently(fleet)
        assert outbox.kept == {}
    assert fleet.calls() == ["patch a"]


class BrokenOutbox(MemoryOutbox):
    def load(self) -> Any:
        raise OSError("no disk")

    def store(self, entry: OutboxEntry) -> None:
        raise OSError("no disk")


async def test_an_outbox_that_is_broken_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    fleet = Fleet(["a"], outbox=BrokenOutbox())
    async with fleet.running():
        fleet.set(fleet.pods[0], "end", SUCCEEDED)
        fleet.manager.terminate_pod(fleet.pods[0])
        await patiently(fleet)
    assert fleet.message(fleet.pods[0]) == "end"
    assert "cannot read the outbox" in caplog.text
    assert "cannot store outbox entry, will retry: uid=uid-a" in caplog.text


async def test_retries_do_not_write_the_same_status_again() -> None:
    fleet = Fleet(["a"], outbox=MemoryOutbox())
    fleet.api.fail("patch", "default", "a", code=500, times=3)
    async with fleet.running():
        fleet.set(fleet.pods[0], "end", SUCCEEDED)
        fleet.manager.terminate_pod(fleet.pods[0])
        await patiently(fleet)
        for _ in range(4):
            await patiently(fleet, 5)
    assert fleet.outbox is not None
    assert fleet.outbox.log == ["keep a", "drop uid-a"]


async def test_upstreams_policy_has_no_use_for_an_outbox() -> None:
    fleet = Fleet(["a"], outbox=BrokenOutbox(), policy=SyncPolicy.upstream())
    async with fleet.running():
        fleet.set(fleet.pods[0], "end", SUCCEEDED)
        await patiently(fleet)
    assert fleet.message(fleet.pods[0]) == "end"


class StubbornOutbox(MemoryOutbox):
    """Fails its first removal."""

    def drop(self, uid: PodUID) -> None:
        first = not any(line.startswith("drop") for line in self.log)
        self.log.append(f"drop {uid}")
        if first:
            raise OSError("no disk")
        self.kept.pop(uid, None)


async def test_what_could_not_be_dropped_is_dropped_later() -> None:
    fleet = Fleet(["a"], outbox=StubbornOutbox())
    assert fleet.outbox is not None
    async with fleet.running():
        fleet.set(fleet.pods[0], "end", SUCCEEDED)
        fleet.manager.terminate_pod(fleet.pods[0])
        await patiently(fleet)
        assert fleet.outbox.kept
        await patiently(fleet, 11)
    assert fleet.outbox.kept == {}


async def test_an_outbox_that_hangs_does_not_keep_others_waiting() -> None:
    outbox = HangingOutbox()
    outbox.store(last_status("gone", "end"))
    fleet = Fleet(["a"], outbox=outbox)
    try:
        async with fleet.running():
            fleet.manager.remove_orphaned_statuses(set())
            await patiently(fleet, 11)
            fleet.set(fleet.pods[0], "news")
            await patiently(fleet)
            assert fleet.message(fleet.pods[0]) == "news"
    finally:
        outbox.disk.set()


@pytest.mark.parametrize("code", [429, 503])
async def test_a_server_that_fails_for_a_moment_does_not_keep_a_stop_from_sending(
    code: int,
) -> None:
    fleet = Fleet(map(str, range(60)), round_trip=0.01, rounds=6)
    for pod in fleet.pods:
        fleet.api.fail("patch", "default", pod.name, code=code)
    async with fleet.running() as loop:
        for pod in fleet.pods:
            fleet.set(pod, "last")
        await stopped(fleet, loop, drain=30)
    assert [fleet.message(pod) for pod in fleet.pods] == ["last"] * 60
