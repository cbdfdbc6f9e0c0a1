"""Thresholds from the settings `evictionHard`, `evictionSoft` and those beside them.

Differences: all errors are reported at once, and a percentage is a decimal number, where upstream
also accepts `NaN%` and hexadecimal digits.

Upstream: ParseThresholdConfig and UpdateContainerFsThresholds, pkg/kubelet/eviction/helpers.go
v1.36.4; the defaults: loadConfigFile, cmd/kubelet/app/server.go; hardEvictionReservation,
pkg/kubelet/cm/helpers.go.
"""

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import structs

from podstatus.eviction.decide.model import (
    ALLOCATABLE_MEMORY_AVAILABLE,
    CONTAINERFS_AVAILABLE,
    CONTAINERFS_INODES_FREE,
    EPHEMERAL_STORAGE,
    IMAGEFS_AVAILABLE,
    IMAGEFS_INODES_FREE,
    MEMORY,
    MEMORY_AVAILABLE,
    NODEFS_AVAILABLE,
    NODEFS_INODES_FREE,
    RESOURCE_BY_SIGNAL,
    EvictionThreshold,
    FilesystemLayout,
    Signal,
    Thresholds,
    ThresholdValue,
)
from podstatus.eviction.decide.pressure import threshold_quantity
from podstatus.kube.scalars.duration import DurationError, parse_duration
from podstatus.kube.scalars.quantity import Quantity, QuantityError

V = TypeVar("V")
Settings = Mapping[str, str]
"""A setting as in a KubeletConfiguration: texts by signal."""

DEFAULT_EVICTION_HARD: Final[Settings] = {
    MEMORY_AVAILABLE: "100Mi",
    NODEFS_AVAILABLE: "10%",
    NODEFS_INODES_FREE: "5%",
    IMAGEFS_AVAILABLE: "15%",
    IMAGEFS_INODES_FREE: "5%",
}

_NOTHING: Final[Settings] = {}
_ENFORCED_ON_PODS = "pods"
_NOT_MONITORED = ("0%", "100%")
_PERCENTAGE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_SECOND = 1_000_000_000


def merge_default_eviction_hard(
    hard: Settings | None, *, merge: bool, defaults: Settings = DEFAULT_EVICTION_HARD
) -> dict[str, str]:
    """Return `evictionHard` with the defaults: all of them if it is absent (None).

    `merge` is `mergeDefaultEvictionSettings`: the signals that `hard` lacks have their defaults
    too. Without it, signals that a present `hard` lacks are not monitored.
    """
    if hard is None:
        return dict(defaults)
    return {**(defaults if merge else {}), **hard}


def parse_threshold_config(
    *,
    hard: Settings,
    soft: Settings = _NOTHING,
    soft_grace_period: Settings = _NOTHING,
    minimum_reclaim: Settings = _NOTHING,
    enforce_node_allocatable: Sequence[str] = (_ENFORCED_ON_PODS,),
) -> Thresholds:
    """Return the thresholds of these settings. Raises ValueError that lists all errors."""
    errors: list[str] = []
    hard_values = _parse_setting("evictionHard", hard, _threshold_value, errors)
    soft_values = _parse_setting("evictionSoft", soft, _threshold_value, errors)
    periods = _parse_setting("evictionSoftGracePeriod", soft_grace_period, _grace_period, errors)
    reclaim = _parse_setting("evictionMinimumReclaim", minimum_reclaim, _reclaim_value, errors)
    errors += _missing_grace_periods(soft, soft_values, soft_grace_period)
    if errors:
        raise ValueError("; ".join(errors))
    monitored = [(signal, value, 0) for signal, value in hard_values.items() if value]
    monitored += [
        (signal, value, periods[signal]) for signal, value in soft_values.items() if value
    ]
    thresholds = tuple(
        EvictionThreshold(
            signal=signal, value=value, grace_period=period, min_reclaim=reclaim.get(signal)
        )
        for signal, value, period in monitored
    )
    if _ENFORCED_ON_PODS in enforce_node_allocatable:
        return thresholds + _allocatable_thresholds(thresholds)
    return thresholds


def with_containerfs_thresholds(thresholds: Thresholds, layout: FilesystemLayout) -> Thresholds:
    """Return the thresholds with those of containerfs, which are always derived.

    They are those of the filesystem that holds the writable layers; configured ones are ignored.
    """
    if layout.split_containerfs and not layout.dedicated_imagefs:
        return thresholds
    derived = []
    for signal, source in _containerfs_sources(layout).items():
        for is_hard in (True, False):
            found = [t for t in thresholds if t.signal == source and t.is_hard == is_hard]
            derived += [structs.replace(threshold, signal=signal) for threshold in found[-1:]]
    return (*(t for t in thresholds if not is_containerfs_signal(t.signal)), *derived)


def is_containerfs_signal(signal: Signal) -> bool:
    """Return whether thresholds of this signal are derived, so that configured ones are ignored."""
    return signal in (CONTAINERFS_AVAILABLE, CONTAINERFS_INODES_FREE)


def hard_eviction_reservation(
    hard_thresholds: Thresholds, capacity: Mapping[str, Quantity]
) -> dict[str, Quantity]:
    """Return what is not allocatable, so that pods within it do not cause eviction.

    Pass the thresholds of `evictionHard` only. A resource without capacity has a capacity of 0.
    """
    reserved = {MEMORY_AVAILABLE: MEMORY, NODEFS_AVAILABLE: EPHEMERAL_STORAGE}
    return {
        reserved[threshold.signal]: threshold_quantity(threshold.value, _whole(capacity, threshold))
        for threshold in hard_thresholds
        if threshold.signal in reserved
    }


def _whole(capacity: Mapping[str, Quantity], threshold: EvictionThreshold) -> int:
    amount = capacity.get(RESOURCE_BY_SIGNAL[threshold.signal])
    return 0 if amount is None else amount.value


def _allocatable_thresholds(thresholds: Thresholds) -> Thresholds:
    return tuple(
        structs.replace(threshold, signal=ALLOCATABLE_MEMORY_AVAILABLE)
        for threshold in thresholds
        if threshold.signal == MEMORY_AVAILABLE and threshold.is_hard
    )


def _containerfs_sources(layout: FilesystemLayout) -> dict[Signal, Signal]:
    if layout.dedicated_imagefs and not layout.split_containerfs:
        return {
            CONTAINERFS_AVAILABLE: IMAGEFS_AVAILABLE,
            CONTAINERFS_INODES_FREE: IMAGEFS_INODES_FREE,
        }
    return {CONTAINERFS_AVAILABLE: NODEFS_AVAILABLE, CONTAINERFS_INODES_FREE: NODEFS_INODES_FREE}


def _parse_setting(
    name: str, setting: Settings, parse: Callable[[str], V], errors: list[str]
) -> dict[Signal, V]:
    parsed: dict[Signal, V] = {}
    for signal, text in setting.items():
        if signal not in RESOURCE_BY_SIGNAL:
            supported = ", ".join(RESOURCE_BY_SIGNAL)
            errors.append(f"{name}: unknown eviction signal {signal!r}; use one of {supported}")
            continue
        try:
            parsed[signal] = parse(text)
        except ValueError as error:
            errors.append(f"{name}[{signal}]: {error}")
    return parsed


def _missing_grace_periods(
    soft: Settings, soft_values: Mapping[Signal, ThresholdValue | None], periods: Settings
) -> Iterable[str]:
    for signal, value in soft_values.items():
        if value is not None and signal not in periods:
            yield (
                f"evictionSoft[{signal}] is {soft[signal]}, without a grace period; "
                f"set evictionSoftGracePeriod[{signal}]"
            )


def _threshold_value(text: str) -> ThresholdValue | None:
    """Return the value; None if the signal is not monitored."""
    if text in _NOT_MONITORED:
        return None
    if text.endswith("%"):
        share = _share(text)
        if not 0 <= share <= 1:
            raise ValueError(f"{text} is out of range; use 0% to 100%")
        return ThresholdValue(share=share)
    quantity = _quantity(text)
    if quantity.parts.value <= 0:
        raise ValueError(f"{text} is not positive; use 0% to not monitor the signal")
    return ThresholdValue(quantity=quantity)


def _reclaim_value(text: str) -> ThresholdValue:
    if text.endswith("%"):
        share = _share(text)
        if share <= 0:
            raise ValueError(f"{text} is not positive; use more than 0%, or an amount")
        return ThresholdValue(share=share)
    quantity = _quantity(text)
    if quantity.parts.value < 0:
        raise ValueError(f"{text} is negative; use 0 or more")
    return ThresholdValue(quantity=quantity)


def _grace_period(text: str) -> int:
    try:
        seconds = parse_duration(text)
    except DurationError as error:
        raise ValueError(str(error)) from error
    if seconds < 0:
        raise ValueError(f"{text} is negative; use 0s or more")
    return round(seconds * _SECOND)


def _quantity(text: str) -> Quantity:
    try:
        return Quantity(text)
    except QuantityError as error:
        raise ValueError(f"{error}; or use a percentage such as 10%") from error


def _share(text: str) -> float:
    """Parse a percentage with the precision of upstream's 32-bit float."""
    number = text.rstrip("%")
    try:
        if _PERCENTAGE.fullmatch(number):
            return _float32(_float32(float(number)) / 100)
    except OverflowError:
        pass
    raise ValueError(f"{text} is not a percentage such as 10%")


def _float32(number: float) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    return rounded
