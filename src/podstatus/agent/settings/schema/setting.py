"""The declaration of a setting, and a raw value with its origin."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, cast

import msgspec

_METADATA = "setting"
ValueT = TypeVar("ValueT")


class InvalidValueError(ValueError):
    """The value is invalid for this setting."""

    def __init__(self, value: object, allowed: str) -> None:
        super().__init__(f"{abbreviate(value)} is not {allowed}")
        self.allowed = allowed


class ValueType(msgspec.Struct, Generic[ValueT], frozen=True, kw_only=True):
    """How the values of a setting are parsed.

    Both functions raise InvalidValueError, or an ExceptionGroup of InvalidValueErrors.
    """

    metavar: str
    parse_text: Callable[[str], ValueT]
    """Parses the text of a flag or an environment variable."""
    parse_document: Callable[[Any], ValueT]
    """Parses the YAML value of a configuration file."""
    allow_empty: bool = False
    """True if an empty text is a value; otherwise it means that the setting is not given."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting with its flag, environment variable, configuration field and help."""

    name: str
    """The field of AgentSettings."""
    value_type: ValueType[Any]
    help: str
    """One sentence."""
    default: str | None
    """In the syntax of the flag; None if there is none, or `load` computes it."""
    default_help: str
    """Describes a default that depends on other settings or on the machine."""
    field: str | None
    """The path of the KubeletConfiguration field, if any: `crashLoopBackOff.…`."""
    group: str
    """Title of the group in the help of the commands."""
    secret: bool
    """The value is never printed or exported."""

    @property
    def flag(self) -> str:
        """Without the leading dashes: `max-pods`."""
        return self.name.replace("_", "-")

    @property
    def short(self) -> str:
        """The short flag without its dash; empty if there is none."""
        return self.name if len(self.name) == 1 else ""

    @property
    def option(self) -> str:
        """The flag with its leading dashes."""
        return f"--{self.flag}"

    @property
    def variable(self) -> str:
        """The name of the environment variable."""
        return f"PODSTATUS_{self.name.upper()}"


def setting(
    value_type: ValueType[ValueT],
    help: str,
    *,
    default: str | None = None,
    default_help: str = "",
    field: str | None = None,
    group: str = "",
    secret: bool = False,
) -> ValueT:
    """Declare a field of a dataclass as a setting.

    Without `group`, it belongs to the group of the setting before it. Returns a dataclass field;
    the return type lets mypy compare the value type with the annotation.
    """
    declaration = Setting(
        name="",
        value_type=value_type,
        help=help,
        default=default,
        default_help=default_help,
        field=field,
        group=group,
        secret=secret,
    )
    return cast(ValueT, dataclasses.field(metadata={_METADATA: declaration}))


def declared_settings(model: type) -> Iterator[Setting]:
    """Return the settings that the fields of a dataclass declare, in their order."""
    group = ""
    for field in dataclasses.fields(model):
        declaration: Setting = field.metadata[_METADATA]
        group = declaration.group or group
        yield msgspec.structs.replace(declaration, name=field.name, group=group)


class RawValue(msgspec.Struct, frozen=True):
    """A value of a setting as given, with its origin for error messages."""

    origin: str
    """`--max-pods`, `PODSTATUS_MAX_PODS`, `config.yaml:3: maxPods`."""
    value: Any
    is_text: bool = True
    """True for a flag or a variable, False for a configuration file."""


def parse_value(setting: Setting, raw: RawValue) -> Any:
    """Return the parsed value. Raises InvalidValueError, or a group of them."""
    read = setting.value_type.parse_text if raw.is_text else setting.value_type.parse_document
    return read(raw.value)


def error_line(setting: Setting, raw: RawValue, error: InvalidValueError) -> str:
    """Return the error message: origin, value, allowed values. Secret values are not shown."""
    if setting.secret:
        return f"{raw.origin}: the value (not shown) is not {error.allowed}"
    return f"{raw.origin}: {error}"


def abbreviate(value: object) -> str:
    """Format a value for a message, at most 100 characters of it."""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 100 else f"{text[:100]}…"
