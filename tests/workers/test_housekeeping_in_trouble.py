"""Housekeeping continues when a cleanup fails."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from podstatus.checkpoint.errors import CheckpointWriteError
from podstatus.checkpoint.resource_state import MemoryState
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.pod import PodUID
from podstatus.pods.pod_manager import PodManager
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.simulated.adapter import SimulatedRuntime
from podstatus.status.manager import StatusManager
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from podstatus.testing.fakes import FakeEventSink
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.housekeeping import Housekeeping
from podstatus.workers.lifecycle.pod_registry import PodRegistry
from podstatus.workers.pod_executor import PodExecutor
from podstatus.workers.pod_syncer import PodSyncer
from podstatus.workers.pod_workers import PodWorkers
from podstatus.workers.policy import WorkerPolicy
from podstatus.workers.probe_result_store import ProbeResultStore


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


def test_a_full_disk_is_survived_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        clock, state = FakeClock(), FullDisk()
        runtime = SimulatedRuntime(clock)
        recorder = EventRecorder(FakeEventSink(), host="node", clock=clock)
        directory = PodManager()
        lives = PodRegistry(directory, all_sources_ready=lambda: True)
        statuses = StatusManager(None, directory, lives, state=state, clock=clock)
        view = Pleg(runtime, clock=clock, on_change=lambda _: None)
        policy = WorkerPolicy()
        steps = PodSyncer(
            runtime,
            view,
            statuses,
            recorder,
            executor=PodExecutor(
                runtime, recorder, crash_loop_backoff=CrashLoopBackoff(), clock=clock
            ),
            probe_results=ProbeResultStore(statuses, lambda _: None),
            clock=clock,
            policy=policy,
            host_ips=list,
        )
        workers = PodWorkers(lives, steps, view, recorder, clock=clock, policy=policy)
        housekeeping = Housekeeping(
            directory,
            lives,
            workers,
            steps,
            statuses,
            view,
            all_sources_ready=lambda: True,
            clock=clock,
        )
        statuses.set_pod_allocation(make_pod("p", uid="uid-p", containers=("a",)))
        await view.relist_once()
        task = asyncio.create_task(housekeeping.run())
        await clock.advance(5)
        assert not task.done()
        assert state.asked == 3
        state.is_full = False
        await clock.advance(2)
        assert statuses.container_resource_allocation(PodUID("uid-p"), "a") is None
        task.cancel()

    asyncio.run(scene())
    assert caplog.text.count("housekeeping failed, will retry") == 1
