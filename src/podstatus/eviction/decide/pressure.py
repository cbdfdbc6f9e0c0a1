"""Thresholds over time: which are met, for how long, and the pressure conditions that follow.

Upstream: the first half of synchronize, pkg/kubelet/eviction/eviction_manager.go; thresholdsMet
and what follows it, helpers.go v1.36.4.
"""

from collections.abc import Mapping

from podstatus.eviction.decide.model import (
    CONDITION_BY_SIGNAL,
    DISK_PRESSURE,
    INODES,
    PIDS,
    PRESSURE_CONDITIONS,
    RESOURCE_BY_SIGNAL,
    EarlyRecovery,
    EvictionConfig,
    EvictionState,
    EvictionThreshold,
    Observation,
    Observations,
    Signal,
    Thresholds,
    ThresholdValue,
)
from podstatus.kube.scalars.quantity import Quantity

_NANO = 1_000_000_000
_INT64_MAX = 2**63 - 1


def threshold_quantity(value: ThresholdValue, capacity: int) -> Quantity:
    """Return the amount; a share of the capacity is rounded down, and printed in binary units.

    Upstream: GetThresholdQuantity, pkg/kubelet/eviction/api/types.go.
    """
    if value.quantity is not None:
        return value.quantity
    return Quantity.of(min(int(float(capacity) * value.share), _INT64_MAX), "BinarySI")


def available_quantity(signal: Signal, observed: Observation) -> Quantity:
    """Return the available amount, printed in binary units for bytes and in decimal ones else."""
    is_count = RESOURCE_BY_SIGNAL[signal] in (INODES, PIDS)
    return Quantity.of(observed.available, "DecimalSI" if is_count else "BinarySI")


def thresholds_met(
    thresholds: Thresholds, observations: Observations, *, enforce_min_reclaim: bool = False
) -> Thresholds:
    """Return the thresholds of which less is available, whatever their grace period.

    With `enforce_min_reclaim`, the minimum reclaim has to be available in addition.
    """
    return tuple(
        threshold
        for threshold in thresholds
        if threshold.signal in observations
        and _required(threshold, observations[threshold.signal], with_reclaim=enforce_min_reclaim)
        > observations[threshold.signal].available * _NANO
    )


def is_reclaimed(thresholds: Thresholds, observations: Observations) -> bool:
    """Return whether deleting unused containers and images was enough, so that no pod is evicted.

    Pass all thresholds of the configuration: upstream checks soft ones too, whatever their grace
    period. Upstream: reclaimNodeLevelResources.
    """
    return not thresholds_met(thresholds, observations, enforce_min_reclaim=True)


def update_pressure(
    state: EvictionState, config: EvictionConfig, observations: Observations, now: int
) -> tuple[EvictionState, Thresholds]:
    """Return the next state, and the thresholds for which to evict a pod now.

    Those are met for their grace period, and have an observation newer than that of the last call:
    after an eviction, usage has to be measured again.
    """
    met = thresholds_met(config.thresholds, observations)
    unresolved = thresholds_met(state.thresholds_met, observations, enforce_min_reclaim=True)
    first_observed_at = {
        threshold: state.first_observed_at.get(threshold, now)
        for threshold in dict.fromkeys((*met, *unresolved))
    }
    observed_at = {
        **state.conditions_observed_at,
        **{CONDITION_BY_SIGNAL[threshold.signal]: now for threshold in first_observed_at},
    }
    grace_period_met = tuple(
        threshold
        for threshold, at in first_observed_at.items()
        if now - at >= threshold.grace_period
    )
    conditions = _active_conditions(observed_at, config, observations, now)
    updated = EvictionState(
        node_conditions=conditions,
        # A condition that ended early must not return once less than the ample space is left.
        conditions_observed_at={name: observed_at[name] for name in conditions},
        first_observed_at=first_observed_at,
        thresholds_met=grace_period_met,
        observations=observations,
    )
    return updated, _updated_stats(grace_period_met, observations, state.observations)


def _required(threshold: EvictionThreshold, observed: Observation, *, with_reclaim: bool) -> int:
    required = threshold_quantity(threshold.value, observed.capacity).nanos
    if with_reclaim and threshold.min_reclaim is not None:
        required += threshold_quantity(threshold.min_reclaim, observed.capacity).nanos
    return required


def _active_conditions(
    observed_at: Mapping[str, int], config: EvictionConfig, observations: Observations, now: int
) -> tuple[str, ...]:
    periods = dict.fromkeys(PRESSURE_CONDITIONS, config.pressure_transition_period)
    recovery = config.early_recovery
    if recovery is not None and _has_ample_disk(config.thresholds, observations, recovery):
        periods[DISK_PRESSURE] = min(periods[DISK_PRESSURE], recovery.hold_period)
    return tuple(
        condition
        for condition, period in periods.items()
        if condition in observed_at and now - observed_at[condition] < period
    )


def _has_ample_disk(
    thresholds: Thresholds, observations: Observations, recovery: EarlyRecovery
) -> bool:
    margins = [
        observed.available * _NANO
        >= recovery.factor * threshold_quantity(threshold.value, observed.capacity).nanos
        for threshold in thresholds
        if CONDITION_BY_SIGNAL[threshold.signal] == DISK_PRESSURE
        and (observed := observations.get(threshold.signal)) is not None
    ]
    return bool(margins) and all(margins)


def _updated_stats(
    thresholds: Thresholds, observations: Observations, last: Observations
) -> Thresholds:
    return tuple(
        threshold
        for threshold in thresholds
        if (observed := observations.get(threshold.signal)) is not None
        and _is_newer(observed, last.get(threshold.signal))
    )


def _is_newer(observed: Observation, last: Observation | None) -> bool:
    if last is None or observed.at is None:
        return True
    return last.at is None or observed.at > last.at
