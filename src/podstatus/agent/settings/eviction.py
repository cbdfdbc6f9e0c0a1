"""The eviction thresholds of the settings."""

from collections.abc import Mapping
from dataclasses import replace

from podstatus.agent.settings.model import AgentSettings
from podstatus.eviction.decide.model import Thresholds
from podstatus.eviction.decide.settings import (
    DEFAULT_EVICTION_HARD,
    merge_default_eviction_hard,
    parse_threshold_config,
)

EMBEDDED_EVICTION_HARD: Mapping[str, str] = {
    "memory.available": "100Mi",
    "nodefs.available": "1%",
    "nodefs.inodesFree": "1%",
}
"""Default thresholds with the embedded API server: often on a personal machine, where a disk that
is 90 % full is no emergency (docs/decisions/0052-eviction.md)."""


def with_default_eviction_hard(
    settings: AgentSettings, given: Mapping[str, str] | None
) -> AgentSettings:
    """The settings with the defaults of `evictionHard`; `given` is None if it is not set."""
    hard = merge_default_eviction_hard(
        given,
        merge=settings.merge_default_eviction_settings,
        defaults=EMBEDDED_EVICTION_HARD if settings.embedded else DEFAULT_EVICTION_HARD,
    )
    return replace(settings, eviction_hard=hard)


def eviction_thresholds(settings: AgentSettings) -> Thresholds:
    """Parse all eviction thresholds. Raises ValueError that lists all errors."""
    return parse_threshold_config(
        hard=settings.eviction_hard,
        soft=settings.eviction_soft,
        soft_grace_period=settings.eviction_soft_grace_period,
        minimum_reclaim=settings.eviction_minimum_reclaim,
    )


def hard_thresholds(settings: AgentSettings) -> Thresholds:
    """Parse the thresholds of `evictionHard` alone. Raises ValueError that lists all errors."""
    return parse_threshold_config(hard=settings.eviction_hard, enforce_node_allocatable=())
