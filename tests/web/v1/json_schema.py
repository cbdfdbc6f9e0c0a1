"""Validate a value against the part of JSON Schema that the OpenAPI document uses.

Stricter than the standard: what an object has must be among its properties, and a keyword that
is not known here is a fault of the schema.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from podstatus.kube.scalars.time import Time, TimeError

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}
_KEYWORDS = {
    "$ref",
    "additionalProperties",
    "anyOf",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "properties",
    "required",
    "title",
    "type",
}


def faults(
    value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], at: str = ""
) -> list[str]:
    """The violations of a schema; `root` is the document that `$ref` points into."""
    if unknown := set(schema) - _KEYWORDS:
        return [f"{at}: the schema has {unknown}"]
    if "$ref" in schema:
        return faults(value, _resolve(schema["$ref"], root), root, at)
    if "anyOf" in schema:
        tried = [faults(value, each, root, at) for each in schema["anyOf"]]
        return [] if any(not found for found in tried) else [f"{at}: {value!r} fits none: {tried}"]
    return list(_faults(value, schema, root, at))


def _faults(
    value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], at: str
) -> Iterator[str]:
    kind = schema.get("type")
    if kind and not _is(value, kind):
        yield f"{at}: {value!r} is no {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    if schema.get("format") == "date-time" and not _is_time(value):
        yield f"{at}: {value!r} is no time"
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from faults(item, schema["items"], root, f"{at}[{index}]")
    if isinstance(value, dict):
        yield from _object_faults(value, schema, root, at)


def _object_faults(
    value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], at: str
) -> Iterator[str]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{at}: {name} is missing"
    for name, item in value.items():
        if name in properties:
            yield from faults(item, properties[name], root, f"{at}.{name}")
        elif others:
            yield from faults(item, others, root, f"{at}.{name}")
        else:
            yield f"{at}: {name} is not in the schema"


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _is_time(value: str) -> bool:
    try:
        return bool(Time.parse(value))
    except TimeError:
        return False


def _resolve(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return dict(found)
