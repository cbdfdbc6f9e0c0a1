"""Which fields of an object are unknown or given twice, in the words of strict decoding.

Upstream: sigs.k8s.io/json, strict decoding.
"""

from collections.abc import Iterator
from typing import Any, Final

from podstatus.kube.schemas import Schema, schema_of

_FREE_FORM: Final = frozenset(["FieldsV1", "IntOrString", "Quantity", "Time", "MicroTime"])


class Members(list[tuple[str, Any]]):
    """A JSON object as it was written: the same name may be there twice."""


def field_errors(value: Any, schema: Schema, path: str = "") -> Iterator[str]:
    """What is wrong with the fields of a value, in the order of the text.

    Values of a wrong kind are for the decoder to refuse: here they have no fields.
    """
    if isinstance(value, (dict, Members)):
        yield from _member_errors(value, schema, path)
    elif isinstance(value, list):
        element = _part(schema)
        for index, item in enumerate(value):
            yield from field_errors(item, element, f"{path}[{index}]")


def _member_errors(value: dict[str, Any] | Members, schema: Schema, path: str) -> Iterator[str]:
    seen = set()
    has_fields = bool(schema.fields) and schema.type not in _FREE_FORM
    for key, item in value.items() if isinstance(value, dict) else value:
        below = f"{path}.{key}" if path else key
        if key in seen:
            yield f'duplicate field "{below}"'
        seen.add(key)
        if has_fields and key not in schema.fields:
            yield f'unknown field "{below}"'
        elif isinstance(item, (dict, list)):
            part = schema.fields[key].schema if has_fields else _part(schema)
            yield from field_errors(item, part, below)


def _part(schema: Schema) -> Schema:
    """What a list or a map holds; a type without fields for anything else."""
    name = schema.type[1:-1] if schema.type[:1] in ("[", "{") else ""
    try:
        return schema_of(name)
    except KeyError:
        return _ANYTHING


_ANYTHING: Final = Schema(type="", fields={})
