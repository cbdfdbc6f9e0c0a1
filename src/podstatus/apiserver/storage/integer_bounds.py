"""Clamps integers of stored objects to the bounds of their Go types.

Before integers were bounded, `periodSeconds: 2**40` could be stored, and every Go client that
listed the pod failed. Such a value is read as the nearest one that fits; the next write of the
object persists it.
"""

import re
from typing import Any, Final

from podstatus.apiserver.resources import RESOURCES
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.patch.schema import Schema
from podstatus.kube.validation.unmarshal import INTEGER_BOUNDS

_LONG_INTEGER: Final = re.compile(rb"[:\[,]-?[0-9]{10}")
"""An integer of at least ten digits, as msgspec encodes it (no spaces); shorter ones fit an int32.
"""
_SCHEMAS: Final = {resource.plural: resource.schema for resource in RESOURCES}
_BOUNDS: Final = INTEGER_BOUNDS | {"IntOrString": INTEGER_BOUNDS["int32"]}


def clamp_integers(resource: str, data: bytes, document: Document) -> Document:
    """Return the document with integers clamped; itself if all fit. `data` is its JSON."""
    schema = _SCHEMAS.get(resource)
    if schema is None or not _LONG_INTEGER.search(data):
        return document
    clamped: Document = _clamp(document, schema)
    return document if clamped == document else clamped


def _clamp(value: Any, schema: Schema, element: Schema | None = None) -> Any:
    if schema.type in _BOUNDS and isinstance(value, int):
        low, high = _BOUNDS[schema.type]
        return min(max(value, low), high)
    if isinstance(value, list) and element is not None:
        return [_clamp(item, element) for item in value]
    if isinstance(value, dict) and schema.fields:
        return {key: _clamp_field(key, item, schema) for key, item in value.items()}
    return value


def _clamp_field(key: str, value: Any, schema: Schema) -> Any:
    field = schema.fields.get(key)
    return value if field is None else _clamp(value, field.schema, field.element)
