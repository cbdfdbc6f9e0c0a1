"""Housekeeping continues when a cleanup fails."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from podstatus.checkpoint.allocation_checkpoint import MemoryState
from podstatus.checkpoint.errors import CheckpointWriteError
from podstatus.kube.objects.pod import PodUID
from podstatus.testing.builders import make_pod
from podstatus.workers.housekeeping import Housekeeping
from tests.support.pod_services import PodServices, ignore


class FullDisk(MemoryState):
    """A state on a full disk."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full = True
        self.asked = 0

    def remove_orphaned_pods(self, active_uids: Iterable[str]) -> None:
        self.asked += 1
        if self.is_full:
            raise CheckpointWriteError(Path("/root-dir/checkpoints"), "no space left on device")
        super().remove_orphaned_pods(active_uids)


async def test_a_full_disk_is_survived_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    state = FullDisk()
    services = PodServices(state=state)
    clock, statuses = services.clock, services.shared.statuses
    housekeeping = Housekeeping(
        services.shared,
        services.workers,
        services.syncer,
        all_sources_ready=lambda: True,
        heartbeat=ignore,
    )
    statuses.set_pod_allocation(make_pod("p", uid="uid-p", containers=("a",)))
    await services.shared.pleg.relist_once()
    task = asyncio.create_task(housekeeping.run())
    await clock.advance(5)
    assert not task.done()
    assert state.asked == 3
    state.is_full = False
    await clock.advance(2)
    assert statuses.container_resource_allocation(PodUID("uid-p"), "a") is None
    task.cancel()
    assert caplog.text.count("housekeeping failed, will retry") == 1
