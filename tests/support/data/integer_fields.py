"""Every integer field of the Go types behind a kind, with an object that holds a value there."""

from collections.abc import Iterator
from typing import Any

import msgspec

from podstatus.kube.patch.schema import Schema, schema_of
from podstatus.kube.validation.go_type_names import go_path

INTEGERS = {"int32": 32, "int64": 64, "IntOrString": 32}


class IntegerField(msgspec.Struct, frozen=True):
    """One way to an integer."""

    path: tuple[str, ...]
    """Of keys; below `[]` is an element of a list."""
    go_field: str
    """As Go's decoder names it: the struct, then the names from the root."""
    bits: int

    @property
    def go_type(self) -> str:
        return f"int{self.bits}"

    def holding(self, value: object) -> Any:
        """An object with nothing but this value."""
        for key in reversed(self.path):
            value = [value] if key == "[]" else {key: value}
        return value


def integer_fields(schema: Schema) -> Iterator[IntegerField]:
    """All of them, in the order of the types."""
    return _below(schema.type, (), "", ())


def _below(
    of_type: str, path: tuple[str, ...], struct: str, names: tuple[str, ...]
) -> Iterator[IntegerField]:
    if of_type in INTEGERS:
        yield IntegerField(path, ".".join((struct, *names)), INTEGERS[of_type])
    elif of_type.startswith("["):
        yield from _below(of_type[1:-1], (*path, "[]"), struct, names)
    elif of_type[0] != "{" and of_type not in _OTHERS:
        for key, field in schema_of(of_type).fields.items():
            below = (*names, *go_path(of_type, key))
            yield from _below(field.schema.type, (*path, key), of_type, below)


_OTHERS = frozenset({"str", "bytes", "bool", "Time", "MicroTime", "Quantity", "FieldsV1"})
