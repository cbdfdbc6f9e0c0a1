"""Put together who sends, as the policy says."""

from collections.abc import Callable

from podstatus.base.clock import Clock, Elapsed
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import PodUID
from podstatus.status.policy import SyncPolicy
from podstatus.status.ports import DeletionSafety, Directory, PodApi, PodEvents, StartupLatency
from podstatus.status.sync.foreign_writes import ForeignWrites
from podstatus.status.sync.locked_store import SyncedStatuses
from podstatus.status.sync.outbox import UndeliveredStatuses
from podstatus.status.sync.parallel import ParallelSyncer
from podstatus.status.sync.sequential import Syncer
from podstatus.status.sync.status_sender import Flight, Sender


def make_syncer(
    client: PodApi,
    statuses: SyncedStatuses,
    *,
    directory: Directory,
    safety: DeletionSafety,
    startup_latency: StartupLatency,
    events: PodEvents,
    redecide: Callable[[PodUID], bool],
    undelivered: UndeliveredStatuses,
    clock: Clock,
    gates: FeatureGates,
    policy: SyncPolicy,
) -> Syncer | ParallelSyncer:
    """Upstream's way, one pod after another, or ours, many at once."""
    sender = Sender(
        client,
        statuses,
        safety=safety,
        startup_latency=startup_latency,
        clock=clock,
        gates=gates,
        policy=policy,
    )
    if policy.sending is None:
        return Syncer(sender, statuses, directory=directory, gates=gates)
    elapsed = Elapsed(clock)
    flight = Flight(
        sender,
        statuses,
        directory=directory,
        undelivered=undelivered,
        elapsed=elapsed,
        read_first=policy.sending.read_first,
    )
    return ParallelSyncer(
        flight,
        statuses,
        directory=directory,
        events=events,
        foreign=ForeignWrites(client, events, elapsed=elapsed, gates=gates),
        redecide=redecide,
        undelivered=undelivered,
        clock=clock,
        elapsed=elapsed,
        gates=gates,
        sending=policy.sending,
    )
