"""The ports and options that all parts of the sync share."""

from collections.abc import Callable

import msgspec

from podstatus.base.clock import Clock
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import PodUID
from podstatus.status.notify import SafeStartupLatency
from podstatus.status.policy import SyncPolicy
from podstatus.status.ports import (
    AllocationState,
    PodApi,
    PodDeletionSafetyProvider,
    PodEvents,
    PodLookup,
)


class SyncContext(msgspec.Struct, frozen=True, kw_only=True):
    client: PodApi
    pod_manager: PodLookup
    safety: PodDeletionSafetyProvider
    startup_latency: SafeStartupLatency | None
    allocations: AllocationState | None
    events: PodEvents | None
    recompute_status: Callable[[PodUID], bool]
    clock: Clock
    gates: FeatureGates
    policy: SyncPolicy
