"""Export the settings, without secrets, as a KubeletConfiguration and as flags.

The configz and flagz pages of the agent serve them.
"""

import platform
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from podstatus import __version__
from podstatus.agent.settings.model import SETTINGS, AgentSettings
from podstatus.agent.settings.schema.parse_kubelet_config import API_VERSION, KIND
from podstatus.agent.settings.schema.scalars import BYTES
from podstatus.agent.settings.schema.setting import Setting
from podstatus.kube.encoding.codec import to_document
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.node import Taint
from podstatus.kube.scalars.duration import format_duration
from podstatus.kube.scalars.quantity import Quantity
from podstatus.node.machine.system_info import kubelet_version
from podstatus.web.ports import AgentDescription
from podstatus.workers.shutdown.plan import ShutdownPeriod

CLASSIFIED = "CLASSIFIED"
"""Upstream's replacement for secret values."""


def kubelet_configuration(settings: AgentSettings) -> dict[str, Any]:
    """Return the supported KubeletConfiguration fields with their values, without secrets."""
    document: dict[str, Any] = {"kind": KIND, "apiVersion": API_VERSION}
    for setting in SETTINGS:
        value = getattr(settings, setting.name)
        if not setting.field or setting.secret or value is None:
            continue
        *groups, name = setting.field.split(".")
        target = document
        for group in groups:
            target = target.setdefault(group, {})
        target[name] = _to_document(setting, value)
    return document


def export_flags(settings: object, table: Sequence[Setting] = SETTINGS) -> dict[str, str]:
    """Return flag -> value as text; an empty text if not set, CLASSIFIED for a secret."""
    return {
        setting.flag: CLASSIFIED if setting.secret and value else _to_text(setting, value)
        for setting in table
        for value in (getattr(settings, setting.name),)
    }


def _to_document(setting: Setting, value: Any) -> Any:
    if isinstance(value, FeatureGates):
        return value.by_name()
    if isinstance(value, Mapping):
        return {name: _to_document(setting, item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_to_document(setting, item) for item in value]
    if isinstance(value, Taint):
        return to_document(value)
    if isinstance(value, ShutdownPeriod):
        return {"priority": value.priority, "shutdownGracePeriodSeconds": int(value.seconds)}
    if isinstance(value, float | PurePath | Quantity) or setting.value_type is BYTES:
        return _to_text(setting, value)
    return value


def _to_text(setting: Setting, value: Any) -> str:
    """Format a value in the syntax of its flag."""
    if isinstance(value, FeatureGates):
        value = value.by_name()
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        separator = "<" if setting.name in ("eviction_hard", "eviction_soft") else "="
        return ",".join(f"{name}{separator}{_to_text(setting, it)}" for name, it in value.items())
    if isinstance(value, tuple):
        return ",".join(_to_text(setting, item) for item in value)
    if isinstance(value, Taint):
        return f"{value.key}={value.value}:{value.effect}"
    if isinstance(value, ShutdownPeriod):
        return f"{value.priority}={value.seconds:g}"
    return format_duration(value) if isinstance(value, float) else str(value)


def about_agent(settings: AgentSettings, now: int) -> AgentDescription:
    """Describe an agent with these settings, started at `now` (ns)."""
    return AgentDescription(
        version=__version__,
        kubernetes=kubelet_version(__version__),
        python=platform.python_version(),
        started=now,
        configuration=kubelet_configuration(settings),
        flags=export_flags(settings),
    )
