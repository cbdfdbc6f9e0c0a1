"""One setting: its names, what it may be, and who said what."""

from collections.abc import Callable
from typing import Any

import msgspec


class InvalidValueError(ValueError):
    """A value is not what a setting may be."""

    def __init__(self, value: object, allowed: str) -> None:
        super().__init__(f"{abbreviate(value)} is not {allowed}")
        self.allowed = allowed


class ValueType(msgspec.Struct, frozen=True, kw_only=True):
    """What the values of a setting are.

    Both functions raise NotAllowedError, or a group of them if there are more.
    """

    metavar: str
    parse_text: Callable[[str], Any]
    """From a flag or an environment variable."""
    parse_document: Callable[[Any], Any]
    """From a configuration file."""
    allow_empty: bool = False
    """Whether an empty text means something else than nothing said."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting by all its names."""

    name: str
    """Of the field of AgentSettings."""
    flag: str
    """Without the dashes: `max-pods`."""
    value_type: ValueType
    help: str
    """One sentence."""
    default: str | None = None
    """As it would be given to the flag; None if `default_help` says what it depends on."""
    default_help: str = ""
    field: str | None = None
    """The path in a KubeletConfiguration, if it has one: `crashLoopBackOff.…`."""
    short: str = ""
    """One letter."""
    secret: bool = False
    """Its values are never shown."""
    group: str = "Node"

    @property
    def option(self) -> str:
        """The flag as it is typed."""
        return f"--{self.flag}"

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"PODSTATUS_{self.flag.replace('-', '_').upper()}"


class RawValue(msgspec.Struct, frozen=True):
    """What somebody said about a setting, and where."""

    origin: str
    """`--max-pods`, `PODSTATUS_MAX_PODS`, `config.yaml:3: maxPods`."""
    value: Any
    is_text: bool = True
    """From a flag or a variable, not from a file."""


def parse_value(setting: Setting, raw: RawValue) -> Any:
    """The value. Raises NotAllowedError, or a group of them."""
    read = setting.value_type.parse_text if raw.is_text else setting.value_type.parse_document
    return read(raw.value)


def error_line(setting: Setting, raw: RawValue, error: InvalidValueError) -> str:
    """One line about a value that cannot be: where, what was given, what is allowed."""
    if setting.secret:
        return f"{raw.origin}: what is given (not shown) is not {error.allowed}"
    return f"{raw.origin}: {error}"


def abbreviate(value: object) -> str:
    """A value in a message, not too long."""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 100 else f"{text[:100]}…"
