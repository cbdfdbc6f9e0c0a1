"""The setting that says how long the pods of each priority have to end.

Upstream: ShutdownGracePeriodByPodPriority, config/v1beta1/types.go, kubelet v0.36.4.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from podstatus.agent.settings.schema.setting import Kind, NotAllowedError
from podstatus.workers.shutdown.plan import ShutdownPeriod

_PAIR = re.compile(r"(-?\d{1,10})=(\d{1,9})", re.ASCII)
_FIELDS = {"priority", "shutdownGracePeriodSeconds"}
_ALLOWED = "a priority and seconds, 0=20"
_LISTED = "a list of maps with priority and shutdownGracePeriodSeconds, whole numbers"
_MOST = 2**31


def _read_text(text: str) -> tuple[ShutdownPeriod, ...]:
    return _each_once(_read_item(item.strip()) for item in text.split(",") if item.strip())


def _read_item(item: str) -> ShutdownPeriod:
    found = _PAIR.fullmatch(item)
    if found is None:
        raise NotAllowedError(item, _ALLOWED)
    return _period(int(found[1]), int(found[2]))


def _read_document(value: Any) -> tuple[ShutdownPeriod, ...]:
    if not isinstance(value, list):
        raise NotAllowedError(value, _LISTED)
    return _each_once(map(_read_map, value))


def _read_map(item: Any) -> ShutdownPeriod:
    if not isinstance(item, Mapping) or set(item) != _FIELDS:
        raise NotAllowedError(item, _LISTED)
    priority, seconds = item["priority"], item["shutdownGracePeriodSeconds"]
    # A bool is a number to Python.
    if type(priority) is not int or type(seconds) is not int:
        raise NotAllowedError(item, _LISTED)
    return _period(priority, seconds)


def _period(priority: int, seconds: int) -> ShutdownPeriod:
    if not -_MOST <= priority < _MOST:
        raise NotAllowedError(priority, f"a priority from {-_MOST} to {_MOST - 1}")
    if seconds < 0:
        raise NotAllowedError(seconds, "a number of seconds from 0 on")
    return ShutdownPeriod(priority=priority, seconds=seconds)


def _each_once(periods: Iterable[ShutdownPeriod]) -> tuple[ShutdownPeriod, ...]:
    found: dict[int, ShutdownPeriod] = {}
    for period in periods:
        if period.priority in found:
            raise NotAllowedError(period.priority, "given once; a priority has one period")
        found[period.priority] = period
    return tuple(found[priority] for priority in sorted(found))


PERIODS = Kind(
    metavar="PRIORITY=SECONDS,…",
    read_text=_read_text,
    read_document=_read_document,
    may_be_empty=True,
)
