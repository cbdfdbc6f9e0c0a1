"""End the pods that stopped agents left running. The caller holds the root directory's lock."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from podstatus.base.clock import Clock
from podstatus.base.msgspec_json import decode_json
from podstatus.runtime.process.cgroups.enforcer import LimitEnforcer
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups
from podstatus.runtime.process.container_stopper import Stopper
from podstatus.runtime.process.records.layout import pods_folder
from podstatus.runtime.process.records.models import LaunchRecord
from podstatus.runtime.process.records.store import RecordStore
from podstatus.runtime.process.shim.records import LAUNCH
from podstatus.runtime.process.shim_control import ShimControl
from podstatus.runtime.process.state.pod_state import PodState
from podstatus.runtime.process.state.pod_table import PodTable
from podstatus.runtime.process.volumes.memory_volumes import MemoryVolumes
from podstatus.runtime.process.volumes.unsandboxed_files import UnsandboxedFiles

OutsideFiles = tuple[UnsandboxedFiles, MemoryVolumes]
"""Files of pods outside of their folders."""


def cgroup_files(folder: Path) -> Iterable[str]:
    """Yield the cgroup files of all recorded containers. Only reads."""
    for path in pods_folder(folder).glob(f"*/containers/*/{LAUNCH}"):
        with suppress(OSError, msgspec.DecodeError):
            yield from decode_json(path.read_bytes(), LaunchRecord).cgroups


async def end_pods(folder: Path, cgroups: Cgroups, clock: Clock, *, grace_seconds: float) -> None:
    """Stop all containers, kill them after the grace period, and remove all pods.

    Raises RuntimeDownError if the folder cannot be used, or a killed process has not ended.
    """
    records, limits = RecordStore(folder), LimitEnforcer(cgroups, lambda *_: None)
    control = ShimControl(records, PodTable(records, lambda: (), limits, clock.now), limits)
    control.recover()
    try:
        stopper = Stopper(control)
        files = (UnsandboxedFiles(folder), MemoryVolumes(folder))
        endings = [
            _end_pod(control, stopper, files, state, grace_seconds)
            for state in control.pods.states()
        ]
        # All of them: one that fails must not leave others running.
        results = await asyncio.gather(*endings, return_exceptions=True)
        await asyncio.to_thread(records.collect_garbage)
        for error in filter(None, results):
            raise error
    finally:
        control.close()


async def _end_pod(
    control: ShimControl,
    stopper: Stopper,
    files: OutsideFiles,
    state: PodState,
    grace_seconds: float,
) -> None:
    uid = state.record.uid
    running = [attempt for attempt in state.attempts if not attempt.has_ended]
    await asyncio.gather(*(stopper.stop_container(uid, it, grace_seconds) for it in running))
    await stopper.stop_pod(uid)
    await asyncio.to_thread(_remove_pod, control, files, state)


def _remove_pod(control: ShimControl, files: OutsideFiles, state: PodState) -> None:
    uid = state.record.uid
    for outside in files:
        outside.remove(uid)
    control.limits.cgroups.remove_pod(uid)
    control.records.remove(control.records.pod_folder(uid).path)
