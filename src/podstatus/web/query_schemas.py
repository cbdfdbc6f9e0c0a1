"""The schemas of values of ours, for the OpenAPI document.

msgspec makes them, but cannot know what our times look like when they travel: it is shown the
same values with texts in their place.
"""

import typing
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import structs

from podstatus.kube.scalars.time import UNSET_TIME, Time

_INSTANT = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
REFERENCE = "#/components/schemas/{name}"


def schemas(kinds: Iterable[type[msgspec.Struct]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The schema of each of these kinds, and those that they refer to, by name."""
    found, components = msgspec.json.schema_components(
        [_as_it_travels(kind) for kind in kinds], ref_template=REFERENCE
    )
    return list(found), components


@cache
def _as_it_travels(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """The kind with texts in place of times."""
    hints = typing.get_type_hints(kind)
    fields = [_field(field, _travelling(hints[field.name])) for field in structs.fields(kind)]
    return msgspec.defstruct(
        kind.__name__,
        fields,
        namespace={"__doc__": kind.__doc__},
        kw_only=True,
        omit_defaults=kind.__struct_config__.omit_defaults,
    )


def _field(field: structs.FieldInfo, kind: Any) -> tuple[str, Any, Any]:
    default = field.default
    if kind is _INSTANT and default == UNSET_TIME:
        kind, default = kind | msgspec.UnsetType, msgspec.UNSET
    # Either of the two may be missing, which a value of msgspec's own stands for.
    given: dict[str, Any] = {"default": default, "default_factory": field.default_factory}
    return field.name, kind, msgspec.field(name=field.encode_name, **given)


def _travelling(hint: Any) -> Any:
    """What a field's type becomes."""
    if hint is Time:
        return _INSTANT
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _as_it_travels(hint)
    parts = typing.get_args(hint)
    if not parts or typing.get_origin(hint) is typing.Literal:
        return hint
    changed = tuple(_travelling(part) for part in parts)
    if changed == parts:
        return hint
    origin = typing.get_origin(hint)
    return typing.Union[changed] if origin not in (tuple, list, dict) else origin[changed]  # noqa: UP007
