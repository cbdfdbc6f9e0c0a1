"""What a configuration file says: the fields of a KubeletConfiguration that are ours.

Fields that the kubelet has and we do not honour are named in a note; unknown ones are mistakes.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

import msgspec
import yaml

from podstatus.agent.settings.schema.kubelet_fields import FIELDS
from podstatus.agent.settings.schema.setting import RawValue, abbreviate
from podstatus.agent.settings.schema.table import SETTINGS
from podstatus.sources.manifest.yaml_bounds import BoundsError, YamlBounds, check_bounds

KIND = "KubeletConfiguration"
API_VERSION = "kubelet.config.k8s.io/v1beta1"

_BY_FIELD = {setting.field: setting for setting in SETTINGS if setting.field}
_GROUPS = {field[:end] for field in _BY_FIELD for end, letter in enumerate(field) if letter == "."}
"""What we know a part of."""
_BY_FLAG = {setting.flag.replace("-", "").lower(): setting for setting in SETTINGS}
_GROUP_FIELDS = {
    "authentication": frozenset({"anonymous", "webhook", "x509"}),
    "authentication.webhook": frozenset({"cacheTTL", "enabled"}),
    "authentication.x509": frozenset({"clientCAFile"}),
    "authorization": frozenset({"mode", "webhook"}),
    "authorization.webhook": frozenset({"cacheAuthorizedTTL", "cacheUnauthorizedTTL"}),
    "crashLoopBackOff": frozenset({"maxContainerRestartPeriod"}),
    "logging": frozenset({"format", "flushFrequency", "verbosity", "vmodule", "options"}),
}
"""The fields of these groups."""
_TYPE_FIELDS = ("kind", "apiVersion")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BOUNDS = YamlBounds(max_depth=20, max_nodes=10_000, max_characters=1 << 20)
"""A KubeletConfiguration has some hundred values, on four levels."""


class ConfigFile(msgspec.Struct, frozen=True):
    """What was found in a file."""

    values: dict[str, RawValue]
    """By the name of the setting."""
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class _Field(msgspec.Struct, frozen=True):
    path: str
    origin: str
    value: Any


def parse_config(text: str, origin: str) -> ConfigFile:
    """Read a file; what is wrong with it is told with the line."""
    try:
        check_bounds(yaml.parse(text, Loader=_LOADER), _BOUNDS)
        root = yaml.compose(text, Loader=_LOADER)
        fields = list(_fields(root, origin)) if isinstance(root, yaml.MappingNode) else None
    except BoundsError as error:
        at = "" if error.line is None else f":{error.line}"
        return ConfigFile({}, (f"{origin}{at}: {error}",))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return ConfigFile({}, (f"{origin}{_line(error)}: not YAML: {_problem_text(error)}",))
    except (LookupError, AttributeError):  # PyYAML does not look before it leaps
        return ConfigFile({}, (f"{origin}: not YAML: a value is not what its tag says",))
    if fields is None:
        wanted = f"a {KIND} with fields at the top is expected"
        return ConfigFile({}, (f"{origin}: {'empty' if root is None else 'no map'}; {wanted}",))
    return _classify(fields, origin)


def _classify(fields: list[_Field], origin: str) -> ConfigFile:
    given: dict[str, RawValue] = {}
    mistakes, notes = _type_errors(fields, origin), []
    seen: set[str] = set()
    for field in fields:
        if field.path in seen:
            mistakes.append(f"{field.origin}: is there twice; remove one of them")
        seen.add(field.path)
        if field.value is None or field.path in _TYPE_FIELDS:
            continue
        if setting := _BY_FIELD.get(field.path):
            given[setting.name] = RawValue(field.origin, field.value, is_text=False)
        elif _is_kubelet_field(field.path):
            notes.append(f"{field.origin}: has no effect here; the kubelet has it, podstatus not")
        else:
            mistakes.append(f"{field.origin}: {_unknown_field_message(field)}")
    return ConfigFile(given, tuple(mistakes), tuple(notes))


def _fields(root: yaml.MappingNode, origin: str, prefix: str = "") -> Iterator[_Field]:
    """The fields at the top, and those below what we know a part of."""
    loader = yaml.SafeLoader("")
    for key, value in root.value:
        path = prefix + str(loader.construct_object(key, deep=True))
        if path in _GROUPS and isinstance(value, yaml.MappingNode):
            yield from _fields(value, origin, f"{path}.")
            continue
        where = f"{origin}:{key.start_mark.line + 1}: {path}"
        yield _Field(path, where, loader.construct_object(value, deep=True))


def _type_errors(fields: list[_Field], origin: str) -> list[str]:
    found = {field.path: field for field in fields}
    wrong = []
    for path, wanted in zip(_TYPE_FIELDS, (KIND, API_VERSION), strict=True):
        if path not in found:
            wrong.append(f"{origin}: {path} is missing; {wanted} is expected")
        elif found[path].value != wanted:
            wrong.append(f"{found[path].origin}: {abbreviate(found[path].value)} is not {wanted}")
    return wrong


def _is_kubelet_field(path: str) -> bool:
    if path in _GROUPS:
        return False
    group, dot, part = path.rpartition(".")
    return part in _GROUP_FIELDS[group] if dot else path in FIELDS


def _unknown_field_message(field: _Field) -> str:
    if field.path in _GROUPS:
        return f"{abbreviate(field.value)} is not a map"
    told = f"no such field in a {KIND}"
    if setting := _BY_FLAG.get(field.path.lower()):
        if not setting.field:
            return f"{told}; use the flag {setting.option}, or {setting.variable}"
        return f"{told}; did you mean {setting.field}?"
    group, dot, _ = field.path.rpartition(".")
    known = [f"{group}.{part}" for part in _GROUP_FIELDS[group]] if dot else sorted(FIELDS)
    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(field.path.lower(), by_lower, n=1)
    return f"{told}; did you mean {by_lower[close[0]]}?" if close else told


def _line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f":{mark.line + 1}" if mark else ""


def _problem_text(error: Exception) -> str:
    return str(getattr(error, "problem", None) or " ".join(str(error).split()))
