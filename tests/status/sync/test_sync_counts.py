"""Sync counts, and the latency of each pod for an observer that wants it."""

import asyncio

from podstatus import Pod, PodManager, StatusManager
from podstatus.kube.api_errors import RejectedError
from podstatus.kube.objects.pod import ApiUID, PodUID
from podstatus.status.counters import Counters
from podstatus.testing.builders import make_pod, make_status, running
from podstatus.testing.clock import FakeClock


class Server:
    """Slow, and rejects some statuses."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock

    async def get_pod(self, namespace: str, name: str) -> Pod:
        return make_pod(name)

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        await self._clock.wait(3)
        if name == "bad":
            raise RejectedError("no")
        return make_pod(name, status=make_status("Running", running("app")))

    async def delete_pod(
        self, namespace: str, name: str, *, uid: ApiUID, grace_period_seconds: int
    ) -> None:
        raise AssertionError("delete_pod is not expected")


class NothingRuns:
    def could_have_running_containers(self, pod: Pod) -> bool:
        return False


class Lags(Counters):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, str, str, float]] = []

    def pod_synced(self, uid: PodUID, namespace: str, name: str, duration_seconds: float) -> None:
        self.heard.append((uid, namespace, name, duration_seconds))


async def test_what_is_on_its_way_rejected_and_late_is_known() -> None:
    clock, lags = FakeClock(), Lags()
    pods = [make_pod("good"), make_pod("bad")]
    statuses = StatusManager(
        Server(clock), PodManager(pods), NothingRuns(), observer=lags, clock=clock
    )
    running_ = asyncio.create_task(statuses.run())
    for pod in pods:
        statuses.set_pod_status(pod, make_status("Running", running("app")))
    await clock.advance(1)
    assert statuses.sync_counts().in_flight == 2
    await clock.advance(2)
    counts = statuses.sync_counts()
    assert (counts.in_flight, counts.quarantined, counts.outbox) == (0, 1, 0)
    assert lags.heard == [("uid-good", "default", "good", 3.0)]
    assert lags.snapshot().status_sync_duration.count == 1
    running_.cancel()
    await asyncio.wait({running_})
