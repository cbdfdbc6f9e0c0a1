"""The values of a transition of /v1 as text, for assertions that read like a log."""

from collections.abc import Mapping
from typing import Any


def before_text(transition: Mapping[str, Any]) -> str:
    """`Pending`, `terminated Error 3`; empty if there was no value."""
    return _text(transition, "before", "stateBefore")


def after_text(transition: Mapping[str, Any]) -> str:
    """As `before_text`, of the value after the transition."""
    return _text(transition, "after", "stateAfter")


def _text(transition: Mapping[str, Any], value: str, state: str) -> str:
    shown = transition.get(state)
    if shown is None:
        return str(transition.get(value, ""))
    parts = (shown.get(key) for key in ("state", "reason", "exitCode"))
    return " ".join(str(part) for part in parts if part is not None)
