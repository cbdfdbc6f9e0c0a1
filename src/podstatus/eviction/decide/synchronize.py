"""One cycle of the eviction manager: pressure, local storage limits, and the pod to evict.

Upstream: synchronize, pkg/kubelet/eviction/eviction_manager.go; evictionMessage,
buildSignalToNodeReclaimFuncs, helpers.go v1.36.4. Of several thresholds for which to evict,
upstream reclaims memory first and otherwise chooses at random; here the order is that of the
configuration.
"""

from collections.abc import Collection, Iterable, Sequence

from podstatus.eviction.decide.messages import eviction_message
from podstatus.eviction.decide.model import (
    CONTAINERFS_AVAILABLE,
    CONTAINERFS_INODES_FREE,
    DELETE_UNUSED_CONTAINERS,
    DELETE_UNUSED_IMAGES,
    IMAGEFS_AVAILABLE,
    IMAGEFS_INODES_FREE,
    MEMORY,
    NODEFS_AVAILABLE,
    NODEFS_INODES_FREE,
    RESOURCE_BY_SIGNAL,
    EvictionConfig,
    EvictionDecision,
    EvictionState,
    EvictionThreshold,
    FilesystemLayout,
    Observations,
    PodEviction,
    ReclaimAttempt,
    Signal,
    Thresholds,
    UsageSummary,
)
from podstatus.eviction.decide.observations import make_signal_observations
from podstatus.eviction.decide.pressure import update_pressure
from podstatus.eviction.decide.ranking import rank_pods
from podstatus.eviction.decide.storage_limits import (
    IMMEDIATE_GRACE_PERIOD_SECONDS,
    storage_limit_evictions,
)
from podstatus.kube.objects.pod import Pod, PodUID, is_critical_pod

_NODEFS = (NODEFS_AVAILABLE, NODEFS_INODES_FREE)
_IMAGEFS = (IMAGEFS_AVAILABLE, IMAGEFS_INODES_FREE)
_CONTAINERFS = (CONTAINERFS_AVAILABLE, CONTAINERFS_INODES_FREE)


def synchronize(
    state: EvictionState,
    config: EvictionConfig,
    summary: UsageSummary,
    pods: Sequence[Pod],
    now: int,
    *,
    terminating: Collection[PodUID] = (),
) -> EvictionDecision:
    """Decide one cycle for the active pods; `now` is a monotonic time in nanoseconds.

    `terminating`: those of the pods that terminate already. They are ranked, since their end frees
    resources, but are not evicted for a limit of their own. Upstream evicts them again, and no
    other pod in the same cycle.
    """
    if not config.thresholds and not config.local_storage_isolation:
        return EvictionDecision(state=state)
    observations = make_signal_observations(summary.node)
    state, to_reclaim = update_pressure(state, config, observations, now)
    if config.local_storage_isolation:
        staying = [pod for pod in pods if pod.uid not in terminating]
        evictions = storage_limit_evictions(staying, summary.pods, config.layout)
        if evictions:
            return EvictionDecision(state=state, limit_evictions=evictions)
    if not to_reclaim:
        return EvictionDecision(state=state)
    ordered = by_eviction_priority(to_reclaim)
    return EvictionDecision(state=state, reclaim=plan_reclaim(ordered, config, summary, pods))


def plan_reclaim(
    thresholds: Thresholds, config: EvictionConfig, summary: UsageSummary, pods: Iterable[Pod]
) -> ReclaimAttempt:
    """Return how to reclaim the resource of the first threshold."""
    first = thresholds[0]
    observations = make_signal_observations(summary.node)
    ranked = rank_pods(first.signal, pods, summary.pods, config.layout)
    pod = next((pod for pod in ranked if not is_critical_pod(pod)), None)
    return ReclaimAttempt(
        threshold=first,
        resource=RESOURCE_BY_SIGNAL[first.signal],
        thresholds=thresholds,
        node_reclaim=node_reclaim(first.signal, config.layout),
        eviction=None if pod is None else _eviction(pod, first, config, summary, observations),
    )


def by_eviction_priority(thresholds: Thresholds) -> Thresholds:
    """Return the thresholds in the order of eviction: those of memory first."""
    return tuple(sorted(thresholds, key=lambda t: RESOURCE_BY_SIGNAL[t.signal] != MEMORY))


def node_reclaim(signal: Signal, layout: FilesystemLayout) -> tuple[str, ...]:
    """Return what to delete before a pod is evicted for this signal.

    Where there are no images, the deletion of unused images does nothing.
    """
    if signal not in (*_NODEFS, *_IMAGEFS, *_CONTAINERFS):
        return ()
    if not layout.dedicated_imagefs:
        return (DELETE_UNUSED_CONTAINERS, DELETE_UNUSED_IMAGES)
    if layout.split_containerfs:
        return (DELETE_UNUSED_IMAGES,) if signal in _IMAGEFS else (DELETE_UNUSED_CONTAINERS,)
    return () if signal in _NODEFS else (DELETE_UNUSED_CONTAINERS, DELETE_UNUSED_IMAGES)


def _eviction(
    pod: Pod,
    threshold: EvictionThreshold,
    config: EvictionConfig,
    summary: UsageSummary,
    observations: Observations,
) -> PodEviction:
    message, annotations = eviction_message(
        pod, summary.pods.get(pod.uid), threshold, observations[threshold.signal]
    )
    return PodEviction(
        pod=pod,
        signal=threshold.signal,
        message=message,
        grace_period_seconds=_grace_period_seconds(pod, threshold, config),
        annotations=annotations,
        is_disruption=True,
    )


def _grace_period_seconds(pod: Pod, threshold: EvictionThreshold, config: EvictionConfig) -> int:
    if threshold.is_hard:
        return IMMEDIATE_GRACE_PERIOD_SECONDS
    own = pod.spec.termination_grace_period_seconds
    maximum = config.max_pod_grace_period_seconds
    return maximum if own is None else min(maximum, own)
