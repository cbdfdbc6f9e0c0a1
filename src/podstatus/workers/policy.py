"""Intervals and options of the pod workers."""

import msgspec

from podstatus.kube.features import FeatureGates


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
