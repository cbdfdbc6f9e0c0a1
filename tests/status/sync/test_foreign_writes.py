"""Foreign writers and the default policy, in virtual time."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from podstatus.kube.api_errors import UnavailableError
from podstatus.kube.conditions import find_condition
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.meta import ManagedFieldsEntry
from podstatus.kube.objects.pod import ApiUID, PodUID
from podstatus.status.policy import SyncPolicy
from podstatus.status.ports import PodReference
from podstatus.status.sync.state.pod_sync_state import CORRECTION_BURST
from podstatus.testing.builders import make_static_pod
from tests.support.status_fleet import READY, RUNNING, DistantPodApi, Fleet, saying

MEDDLING: dict[str, Any] = {
    "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Meddling"}]}
}
CORRECTED = (
    "Condition Ready was set to False (reason Meddling) by another client; "
    "the node owns it and has set it back to True"
)


class Watched(Fleet):
    """One pod whose watched copies are passed to the manager; other clients write to it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(["a"], **options)
        self.pod = self.pods[0]
        self.recomputed: list[PodUID] = []
        self.will: Callable[[PodUID], bool] = lambda _: False

    def recompute_status(self, uid: PodUID) -> bool:
        self.recomputed.append(uid)
        return self.will(uid)

    async def is_ready(self) -> None:
        await self.set_and_wait(self.pod, "", READY)
        self.show()
        await self.clock.advance(0)
        assert self.ready() == "True"
        self.calls()

    def show(self) -> None:
        """Deliver the server's copy through the watch."""
        self.watch(self.pod)
        self.manager.pod_observed(self.pod.uid)

    async def meddle(self, patch: dict[str, Any] = MEDDLING, *, shown: bool = True) -> None:
        self.api.patch("default", "a", patch)
        if shown:
            self.show()
        await self.clock.advance(0)

    def ready(self) -> str:
        condition = find_condition(self.stored(self.pod).status.conditions, "Ready")
        return "-" if condition is None else condition.status

    def messages(self) -> list[str]:
        return [message for _, _, message in self.recorder.events]


async def test_a_foreign_condition_is_corrected_when_the_watch_shows_it_and_reported() -> None:
    fleet = Watched(policy=SyncPolicy(full_sync_period=3600))
    async with fleet.running():
        await fleet.is_ready()
        await fleet.meddle()
    assert fleet.ready() == "True"
    assert fleet.calls() == ["patch a"]
    [(about, reason, message)] = fleet.recorder.events
    assert about == PodReference("default", "a", ApiUID(fleet.pod.uid))
    assert reason == "ForeignStatusWrite"
    assert message == CORRECTED


async def test_upstreams_policy_waits_for_the_reconcile_and_records_no_event() -> None:
    fleet = Watched(policy=SyncPolicy.upstream())
    async with fleet.running():
        await fleet.is_ready()
        await fleet.meddle()
        assert fleet.ready() == "False"
        await fleet.clock.advance(10)
    assert fleet.ready() == "True"
    assert fleet.messages() == []


async def test_what_we_wrote_is_not_foreign_however_the_watch_lags() -> None:
    fleet = Watched()
    async with fleet.running():
        await fleet.is_ready()
        await fleet.set_and_wait(fleet.pod, "two", RUNNING)
        fleet.show()
        fleet.set(fleet.pod, "three", READY)
        fleet.show()
        await fleet.clock.advance(0)
        fleet.show()
        await fleet.clock.advance(30)
    assert fleet.messages() == []
    assert fleet.recomputed == []
    assert fleet.calls() == ["patch a", "patch a"]


async def test_what_the_watch_shows_before_our_answer_came_is_looked_at_then() -> None:
    """The node's own write is not foreign; a later one is."""
    fleet = Watched(round_trip=1.0, policy=SyncPolicy(full_sync_period=3600))
    async with fleet.running():
        await fleet.set_and_wait(fleet.pod, "", READY, seconds=2)
        fleet.set(fleet.pod, "two", READY)
        await fleet.clock.advance(0.6)  # applied, but the response has not arrived
        fleet.show()
        await fleet.clock.advance(0)
        assert fleet.recomputed == []
        fleet.api.patch("default", "a", MEDDLING)
        fleet.show()
        await fleet.clock.advance(0)
        assert fleet.recomputed == []
        await fleet.clock.advance(3)
    assert fleet.recomputed == [fleet.pod.uid]
    assert fleet.messages() == [CORRECTED]
    assert fleet.ready() == "True"


async def test_the_status_is_recomputed_not_only_sent_again() -> None:
    fleet = Watched(policy=SyncPolicy(full_sync_period=3600))
    async with fleet.running():
        await fleet.is_ready()
        fleet.set(fleet.pod, "", READY)  # as in every sync of its pod worker
        fleet.will = lambda _: True
        await fleet.meddle()
        assert fleet.calls() == []  # the recomputation will set it
        fleet.set(fleet.pod, "", READY)  # equal, but sent anyway
        await fleet.clock.advance(0)
        assert fleet.calls() == ["patch a"]
        assert fleet.ready() == "True"
        version = fleet.manager.entries()[fleet.pod.uid].version
        await fleet.set_and_wait(fleet.pod, "", READY)
    assert fleet.manager.entries()[fleet.pod.uid].version == version
    assert fleet.calls() == []
    assert fleet.messages() == [CORRECTED]


async def test_a_write_that_matches_the_recomputed_status_is_not_reported() -> None:
    fleet = Watched()
    async with fleet.running():
        await fleet.is_ready()
        fleet.will = lambda _: True
        await fleet.meddle({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
        await fleet.set_and_wait(fleet.pod, "", RUNNING)
    assert fleet.ready() == "False"
    assert fleet.messages() == []


async def test_the_same_write_is_reported_once_per_interval() -> None:
    fleet = Watched()
    async with fleet.running():
        await fleet.is_ready()
        for _ in range(3):
            await fleet.meddle()
            await fleet.clock.advance(120)
        assert fleet.messages() == [CORRECTED]
        await fleet.meddle({"status": {"phase": "Failed"}})
        assert len(fleet.messages()) == 2
        await fleet.clock.advance(600)
        await fleet.meddle()
    assert fleet.messages()[2:] == [CORRECTED]


async def test_a_recomputed_value_is_reported() -> None:
    fleet = Watched()
    async with fleet.running():
        await fleet.is_ready()
        fleet.will = lambda _: True
        await fleet.meddle()
        await fleet.set_and_wait(fleet.pod, "", RUNNING)
    assert fleet.messages() == [
        (
            "Condition Ready was set to False (reason Meddling) by another client; "
            "the node owns it and has recomputed it as False"
        )
    ]


async def test_who_promises_and_does_nothing_is_not_waited_for_longer_than_a_period() -> None:
    fleet = Watched()
    async with fleet.running():
        await fleet.is_ready()
        fleet.will = lambda _: True
        await fleet.meddle()
        await fleet.clock.advance(10)
    assert fleet.ready() == "True"
    assert fleet.messages() == [CORRECTED]


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (
            {"status": {"phase": "Failed"}},
            (
                "Field phase was set to Failed by another client; "
                "the node owns it and has set it back to Running"
            ),
        ),
        (
            {"status": {"containerStatuses": []}},
            (
                "Field containerStatuses was removed by another client; "
                "the node owns it and has set it back"
            ),
        ),
        (
            {"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}},
            (
                "Condition Ready was removed by another client; "
                "the node owns it and has set it back to True"
            ),
        ),
    ],
)
async def test_other_owned_things_are_corrected_too(patch: dict[str, Any], message: str) -> None:
    fleet = Watched(policy=SyncPolicy(full_sync_period=3600))
    async with fleet.running():
        await fleet.is_ready()
        before = fleet.stored(fleet.pod).status
        await fleet.meddle(patch)
        assert fleet.stored(fleet.pod).status == before
    assert fleet.messages() == [message]


async def test_what_is_not_ours_is_left_alone() -> None:
    fleet = Watched()
    theirs = {
        "status": {
            "conditions": [
                {"type": "example.com/mine", "status": "True"},
                {"type": "DisruptionTarget", "status": "True", "reason": "Preempted"},
            ]
        }
    }
    async with fleet.running():
        await fleet.is_ready()
        await fleet.meddle(theirs)
    assert fleet.calls() == []
    assert fleet.messages() == []


async def test_a_writer_that_never_stops_is_met_at_the_usual_pace() -> None:
    fleet = Watched()
    seconds = 60
    async with fleet.running():
        await fleet.is_ready()
        for _ in range(10 * seconds):
            await fleet.meddle()
            await fleet.clock.advance(0.1)
        calls = fleet.calls()
        assert len(calls) <= CORRECTION_BURST + seconds // 10 + 1
        assert fleet.messages() == [CORRECTED]
        await fleet.clock.advance(10)
        assert fleet.ready() == "True"
        await fleet.clock.advance(60)
        fleet.calls()
        await fleet.meddle()  # the token bucket has refilled
    assert fleet.calls() == ["patch a"]


async def test_after_a_patch_without_an_answer_nothing_is_blamed_on_others() -> None:
    fleet = Watched()
    async with fleet.running():
        await fleet.is_ready()
        fleet.api.fail("patch", "default", "a", code=503)
        await fleet.set_and_wait(fleet.pod, "two", RUNNING)
        # The patch was applied, and the watch shows it.
        fleet.api.patch("default", "a", {"status": {"message": "two"}})
        fleet.show()
        await fleet.clock.advance(5)
    assert fleet.messages() == []


async def test_a_failed_correction_is_reported_once_it_succeeds() -> None:
    fleet = Watched()
    async with fleet.running():
        await fleet.is_ready()
        fleet.api.fail("patch", "default", "a", code=503, times=2)
        await fleet.meddle()
        assert fleet.messages() == []
        await fleet.clock.advance(10)
    assert fleet.ready() == "True"
    assert fleet.messages() == [CORRECTED]


class Naming(DistantPodApi):
    """Returns these managed fields."""

    trouble: Exception | None = None

    async def managed_fields(
        self, namespace: str, name: str, *, uid: ApiUID
    ) -> Sequence[ManagedFieldsEntry]:
        await self.get_pod(namespace, name)
        if self.trouble is not None:
            raise self.trouble
        ready: dict[str, Any] = {'k:{"type":"Ready"}': {"f:status": {}, "f:reason": {}}}
        fields = {"f:status": {"f:conditions": ready}}
        return [from_document({"manager": "kubectl-edit", "fieldsV1": fields}, ManagedFieldsEntry)]


def naming() -> tuple[Watched, Naming]:
    fleet = Watched()
    api = Naming(fleet.clock, 0.0, watcher=fleet.directory)
    api.put(fleet.pod)
    fleet.api = api
    fleet.restart()
    return fleet, api


async def test_the_writer_is_asked_for_before_it_is_corrected() -> None:
    fleet, _ = naming()
    async with fleet.running():
        await fleet.is_ready()
        await fleet.meddle()
    assert fleet.calls() == ["get a", "patch a"]
    assert fleet.messages() == [CORRECTED.replace("another client", '"kubectl-edit"')]


async def test_a_writer_that_cannot_be_asked_for_keeps_nothing_from_being_corrected() -> None:
    fleet, api = naming()
    api.trouble = UnavailableError("gone fishing")
    async with fleet.running():
        await fleet.is_ready()
        await fleet.meddle()
    assert fleet.ready() == "True"
    assert fleet.messages() == [CORRECTED]


async def test_a_reverted_foreign_write_is_not_reported_and_managed_fields_are_not_read() -> None:
    fleet, _ = naming()
    back = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": ""}]}}
    async with fleet.running():
        await fleet.is_ready()
        fleet.will = lambda _: True
        await fleet.meddle()
        await fleet.meddle(back)
        await fleet.set_and_wait(fleet.pod, "", READY, seconds=20)
    assert fleet.messages() == []
    assert fleet.calls() == []


async def test_managed_fields_are_not_read_without_a_foreign_write() -> None:
    fleet, _ = naming()
    async with fleet.running():
        await fleet.is_ready()
        await fleet.set_and_wait(fleet.pod, "two", READY)
    assert fleet.calls() == ["patch a"]


async def test_a_mirror_pod_is_corrected_as_its_static_pod_says() -> None:
    fleet = Watched()
    static, mirror = make_static_pod(), make_static_pod(mirror=True)
    fleet.api.put(mirror)
    fleet.directory.update_pod(static)
    fleet.directory.update_pod(fleet.stored(mirror))
    async with fleet.running():
        fleet.manager.set_pod_status(static, saying("", READY))
        await fleet.clock.advance(0)
        fleet.api.patch(*mirror.full_name, MEDDLING)
        fleet.directory.update_pod(fleet.stored(mirror))
        fleet.manager.pod_observed(mirror.uid)
        await fleet.clock.advance(0)
    assert fleet.recomputed == [static.uid]
    [(about, _, message)] = fleet.recorder.events
    assert about.uid == ApiUID(mirror.uid)
    assert message == CORRECTED
