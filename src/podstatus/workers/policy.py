"""How pods are looked after, as a value."""

import msgspec

from podstatus.kube.features import FeatureGates


class WorkerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds; the defaults are the kubelet's."""

    sync_frequency: float = 60.0
    """How often a pod is looked at though nothing happened."""
    retry_after: float = 10.0
    """How long to wait after something could not be done."""
    jitter: float = 0.5
    """The part that is added to a wait by chance, so that pods do not come back together."""
    housekeeping: float = 2.0
    """How often what nobody asks for any more is looked for."""
    keep_terminated_pod_volumes: bool = False
    """Let a pod go before what it left behind was reclaimed."""
    gates: FeatureGates = FeatureGates()
