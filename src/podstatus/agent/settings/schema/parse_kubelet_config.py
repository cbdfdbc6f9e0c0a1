"""Parse a KubeletConfiguration file.

A kubelet field that podstatus does not support gives a warning, an unknown field an error.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

import msgspec
import yaml

from podstatus.agent.settings.model import SETTINGS
from podstatus.agent.settings.schema.known_kubelet_fields import FIELDS
from podstatus.agent.settings.schema.setting import RawValue, abbreviate
from podstatus.sources.manifest.yaml_bounds import BoundsError, YamlBounds, check_bounds

KIND = "KubeletConfiguration"
API_VERSION = "kubelet.config.k8s.io/v1beta1"

_BY_FIELD = {setting.field: setting for setting in SETTINGS if setting.field}
_GROUPS = {field[:end] for field in _BY_FIELD for end, letter in enumerate(field) if letter == "."}
"""Paths of the maps that contain supported fields."""
_BY_FLAG = {setting.name.replace("_", ""): setting for setting in SETTINGS}
_TYPE_FIELDS = ("kind", "apiVersion")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BOUNDS = YamlBounds(max_depth=20, max_nodes=10_000, max_characters=1 << 20)
"""A KubeletConfiguration has some hundred values, on four levels."""


class ConfigFile(msgspec.Struct, frozen=True):
    """The parsed content of a configuration file."""

    values: dict[str, RawValue]
    """Setting name -> value."""
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class _Field(msgspec.Struct, frozen=True):
    path: str
    origin: str
    value: Any


def parse_config(text: str, origin: str) -> ConfigFile:
    """Parse the text of a file. Errors are returned, each with `origin` and line."""
    try:
        check_bounds(yaml.parse(text, Loader=_LOADER), _BOUNDS)
        root = yaml.compose(text, Loader=_LOADER)
        fields = list(_fields(root, origin)) if isinstance(root, yaml.MappingNode) else None
    except BoundsError as error:
        at = "" if error.line is None else f":{error.line}"
        return ConfigFile({}, (f"{origin}{at}: {error}",))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return ConfigFile({}, (f"{origin}{_line(error)}: not YAML: {_problem_text(error)}",))
    except (LookupError, AttributeError):  # PyYAML raises these for a wrong explicit tag
        return ConfigFile({}, (f"{origin}: not YAML: a value does not match its tag",))
    if fields is None:
        problem = "the file is empty" if root is None else "the file is not a map"
        return ConfigFile({}, (f"{origin}: {problem}; expected a {KIND}",))
    return _classify(fields, origin)


def _classify(fields: list[_Field], origin: str) -> ConfigFile:
    values: dict[str, RawValue] = {}
    errors, warnings = _type_errors(fields, origin), []
    seen: set[str] = set()
    for field in fields:
        if field.path in seen:
            errors.append(f"{field.origin}: duplicate field; remove one of them")
        seen.add(field.path)
        if field.value is None or field.path in _TYPE_FIELDS:
            continue
        if setting := _BY_FIELD.get(field.path):
            values[setting.name] = RawValue(field.origin, field.value, is_text=False)
        elif field.path in FIELDS - _GROUPS:
            warnings.append(f"{field.origin}: ignored; podstatus does not support this field")
        else:
            errors.append(f"{field.origin}: {_unknown_field_message(field)}")
    return ConfigFile(values, tuple(errors), tuple(warnings))


def _fields(root: yaml.MappingNode, origin: str, prefix: str = "") -> Iterator[_Field]:
    """The top-level fields, with the maps of `_GROUPS` replaced by their fields."""
    loader = yaml.SafeLoader("")
    for key, value in root.value:
        path = prefix + str(loader.construct_object(key, deep=True))
        if path in _GROUPS and isinstance(value, yaml.MappingNode):
            yield from _fields(value, origin, f"{path}.")
            continue
        where = f"{origin}:{key.start_mark.line + 1}: {path}"
        yield _Field(path, where, loader.construct_object(value, deep=True))


def _type_errors(fields: list[_Field], origin: str) -> list[str]:
    by_path = {field.path: field for field in fields}
    errors = []
    for path, expected in zip(_TYPE_FIELDS, (KIND, API_VERSION), strict=True):
        field = by_path.get(path)
        if field is None:
            errors.append(f"{origin}: {path} is missing; expected {expected}")
        elif field.value != expected:
            errors.append(f"{field.origin}: {abbreviate(field.value)} is not {expected}")
    return errors


def _unknown_field_message(field: _Field) -> str:
    if field.path in _GROUPS:
        return f"{abbreviate(field.value)} is not a map"
    message = f"no such field in a {KIND}"
    if setting := _BY_FLAG.get(field.path.lower()):
        if not setting.field:
            return f"{message}; use the flag {setting.option}, or {setting.variable}"
        return f"{message}; did you mean {setting.field}?"
    group = _group(field.path)
    by_lower = {path.lower(): path for path in sorted(FIELDS) if _group(path) == group}
    close = get_close_matches(field.path.lower(), by_lower, n=1)
    return f"{message}; did you mean {by_lower[close[0]]}?" if close else message


def _group(path: str) -> str:
    return path.rpartition(".")[0]


def _line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f":{mark.line + 1}" if mark else ""


def _problem_text(error: Exception) -> str:
    return str(getattr(error, "problem", None) or " ".join(str(error).split()))
