"""What several services of this package depend on: other services, intervals and options."""

import msgspec

from podstatus.base.clock import Clock
from podstatus.events.recorder import EventRecorder
from podstatus.kube.features import FeatureGates
from podstatus.pods.pod_manager import PodManager
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import Runtime
from podstatus.status.manager import StatusManager
from podstatus.workers.lifecycle.pod_registry import PodRegistry
from podstatus.workers.ports import WorkObserver


class WorkerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds; the defaults are the kubelet's."""

    sync_frequency: float = 60.0
    """Interval between two syncs of a pod without any event."""
    retry_after: float = 10.0
    """Wait after a failed sync."""
    jitter: float = 0.5
    """Maximum random extension of a wait, as a fraction, so that pods do not sync in lockstep."""
    housekeeping: float = 2.0
    """Interval between two housekeeping runs."""
    keep_terminated_pod_volumes: bool = False
    """Allow the deletion of a pod before its files and sandbox are removed."""
    gates: FeatureGates = FeatureGates()


class WorkerDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """The node's pods, their runtime and their statuses, and how to report on them."""

    runtime: Runtime
    pleg: Pleg
    pod_manager: PodManager
    registry: PodRegistry
    statuses: StatusManager
    recorder: EventRecorder
    clock: Clock
    policy: WorkerPolicy
    observer: WorkObserver
