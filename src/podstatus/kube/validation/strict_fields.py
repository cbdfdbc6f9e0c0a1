"""Find unknown and duplicate fields, with the messages of strict decoding.

Upstream: sigs.k8s.io/json, strict decoding; saveStrictError, kubernetes_patch.go.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from podstatus.kube.patch.schema import Schema

_FREE_FORM: Final = frozenset(["FieldsV1", "IntOrString", "Quantity", "Time", "MicroTime"])

MAX_ERRORS: Final = 100
"""Maximum number of errors for one object, as upstream."""


class JsonMembers(list[tuple[str, Any]]):
    """A JSON object as its list of members, in which a name may occur twice."""


def strict_field_errors(value: Any, schema: Schema) -> list[str]:
    """Return the first `MAX_ERRORS` errors of `field_errors`."""
    return list(islice(field_errors(value, schema), MAX_ERRORS))


def field_errors(value: Any, schema: Schema, path: str = "") -> Iterator[str]:
    """Yield the errors of the fields of a value, in the order of the text, each error once.

    Values of a wrong type count as having no fields: the decoder rejects them.
    """
    if isinstance(value, (dict, JsonMembers)):
        yield from _member_errors(value, schema, path)
    elif isinstance(value, list):
        element = _part(schema)
        for index, item in enumerate(value):
            yield from field_errors(item, element, f"{path}[{index}]")


def _member_errors(value: dict[str, Any] | JsonMembers, schema: Schema, path: str) -> Iterator[str]:
    seen: set[str] = set()
    repeated: set[str] = set()
    has_fields = bool(schema.fields) and schema.type not in _FREE_FORM
    for key, item in value.items() if isinstance(value, dict) else value:
        field_path = f"{path}.{key}" if path else key
        if key in seen and key not in repeated:
            repeated.add(key)
            yield f'duplicate field "{field_path}"'
        is_unknown = has_fields and key not in schema.fields
        if is_unknown and key not in seen:
            yield f'unknown field "{field_path}"'
        seen.add(key)
        if is_unknown:
            continue
        if isinstance(item, (dict, list)):
            part = schema.fields[key].schema if has_fields else _part(schema)
            yield from field_errors(item, part, field_path)


def _part(schema: Schema) -> Schema:
    """Return the schema of the elements of a list or map; otherwise a schema without fields."""
    return Schema(type=schema.type[1:-1] if schema.type[:1] in ("[", "{") else "")
