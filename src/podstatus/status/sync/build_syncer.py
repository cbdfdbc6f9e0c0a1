"""Build the syncer that the policy selects."""

from collections.abc import Callable

from podstatus.base.clock import Clock, Elapsed
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import PodUID
from podstatus.status.pod_allocations import PodAllocations
from podstatus.status.policy import SyncPolicy
from podstatus.status.ports import (
    PodApi,
    PodDeletionSafetyProvider,
    PodEvents,
    PodLookup,
    PodStartupLatencyStateHelper,
)
from podstatus.status.store import StatusStore
from podstatus.status.sync.foreign_write_corrector import ForeignWriteCorrector
from podstatus.status.sync.outbox_writer import OutboxWriter
from podstatus.status.sync.parallel import ParallelSyncer
from podstatus.status.sync.sequential import SequentialSyncer
from podstatus.status.sync.status_sender import StatusPatcher, StatusSender
from podstatus.status.sync.syncer import Syncer


def build_syncer(
    client: PodApi,
    statuses: StatusStore,
    *,
    pod_manager: PodLookup,
    safety: PodDeletionSafetyProvider,
    startup_latency: PodStartupLatencyStateHelper,
    allocations: PodAllocations,
    events: PodEvents,
    recompute_status: Callable[[PodUID], bool],
    outbox: OutboxWriter,
    clock: Clock,
    gates: FeatureGates,
    policy: SyncPolicy,
) -> Syncer:
    """Return the sequential syncer (as upstream) or the parallel one, according to `policy`."""
    patcher = StatusPatcher(
        client,
        statuses,
        safety=safety,
        startup_latency=startup_latency,
        allocations=allocations,
        clock=clock,
        gates=gates,
        policy=policy,
    )
    if policy.parallel is None:
        return SequentialSyncer(patcher, statuses, pod_manager=pod_manager, gates=gates)
    elapsed = Elapsed(clock)
    status_sender = StatusSender(
        patcher,
        statuses,
        pod_manager=pod_manager,
        outbox=outbox,
        elapsed=elapsed,
        read_first=policy.parallel.read_first,
    )
    return ParallelSyncer(
        status_sender,
        statuses,
        pod_manager=pod_manager,
        events=events,
        foreign_writes=ForeignWriteCorrector(client, events, elapsed=elapsed, gates=gates),
        recompute_status=recompute_status,
        outbox=outbox,
        clock=clock,
        elapsed=elapsed,
        gates=gates,
        options=policy.parallel,
    )
