"""The value type of `--shutdown-grace-period-by-pod-priority`.

Upstream: ShutdownGracePeriodByPodPriority, config/v1beta1/types.go, kubelet v0.36.4.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from podstatus.agent.settings.schema.setting import InvalidValueError, ValueType
from podstatus.workers.shutdown.plan import ShutdownPeriod

_PAIR = re.compile(r"(-?\d{1,10})=(\d{1,9})", re.ASCII)
_FIELDS = {"priority", "shutdownGracePeriodSeconds"}
_ITEM_FORMAT = "a priority and seconds, such as 0=20"
_LIST_FORMAT = "a list of maps with the integers priority and shutdownGracePeriodSeconds"
_PRIORITY_LIMIT = 2**31


def _parse_text(text: str) -> tuple[ShutdownPeriod, ...]:
    return _unique(_parse_item(item.strip()) for item in text.split(",") if item.strip())


def _parse_item(item: str) -> ShutdownPeriod:
    match = _PAIR.fullmatch(item)
    if match is None:
        raise InvalidValueError(item, _ITEM_FORMAT)
    return _period(int(match[1]), int(match[2]))


def _parse_document(value: Any) -> tuple[ShutdownPeriod, ...]:
    if not isinstance(value, list):
        raise InvalidValueError(value, _LIST_FORMAT)
    return _unique(map(_parse_map, value))


def _parse_map(item: Any) -> ShutdownPeriod:
    if not isinstance(item, Mapping) or set(item) != _FIELDS:
        raise InvalidValueError(item, _LIST_FORMAT)
    priority, seconds = item["priority"], item["shutdownGracePeriodSeconds"]
    # bool is a subclass of int.
    if type(priority) is not int or type(seconds) is not int:
        raise InvalidValueError(item, _LIST_FORMAT)
    return _period(priority, seconds)


def _period(priority: int, seconds: int) -> ShutdownPeriod:
    if not -_PRIORITY_LIMIT <= priority < _PRIORITY_LIMIT:
        raise InvalidValueError(
            priority, f"a priority from {-_PRIORITY_LIMIT} to {_PRIORITY_LIMIT - 1}"
        )
    if seconds < 0:
        raise InvalidValueError(seconds, "a number of seconds of at least 0")
    return ShutdownPeriod(priority=priority, seconds=seconds)


def _unique(periods: Iterable[ShutdownPeriod]) -> tuple[ShutdownPeriod, ...]:
    by_priority: dict[int, ShutdownPeriod] = {}
    for period in periods:
        if period.priority in by_priority:
            raise InvalidValueError(period.priority, "unique; give each priority once")
        by_priority[period.priority] = period
    return tuple(by_priority[priority] for priority in sorted(by_priority))


PERIODS = ValueType(
    metavar="PRIORITY=SECONDS,…",
    parse_text=_parse_text,
    parse_document=_parse_document,
    allow_empty=True,
)
