"""Take over a value that somebody else made: share nothing that they could still change."""

import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from msgspec import structs

from podstatus.kube.quantity import Quantity
from podstatus.kube.wire import Wire

W = TypeVar("W", bound=Wire)


def detached(value: W) -> W:
    """The value with its maps copied, lists as tuples and quantities checked.

    Raises QuantityError for an unreadable quantity and TypeError for what is no such value.
    """
    changes = {}
    for name, detach in _holders(type(value)):
        item = getattr(value, name)
        if item is not None and (changed := detach(item)) is not item:
            changes[name] = changed
    return structs.replace(value, **changes) if changes else value


@cache
def _holders(kind: type[Wire]) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """The fields that hold, at any depth, a list or a map."""
    hints = typing.get_type_hints(kind)
    found = ((name, _detacher(hints[name])) for name in kind.__struct_fields__)
    return tuple((name, detach) for name, detach in found if detach is not None)


def _detacher(declared: Any) -> Callable[[Any], Any] | None:
    origin = typing.get_origin(declared)
    if origin in (typing.Union, types.UnionType):
        kinds = [arg for arg in typing.get_args(declared) if arg is not type(None)]
        return _detacher(kinds[0]) if len(kinds) == 1 else None
    if origin is tuple:
        return _list_detacher(typing.get_args(declared)[0])
    if origin is dict:
        return _quantities if typing.get_args(declared)[1] is Quantity else dict
    if isinstance(declared, type) and issubclass(declared, Wire):
        return detached if _holders(declared) else None
    return None


def _list_detacher(element: Any) -> Callable[[Any], Any]:
    detach = _detacher(element)
    if detach is None:
        return tuple

    def detach_list(items: Any) -> Any:
        changed = tuple(map(detach, items))
        if type(items) is tuple and all(map(_is, changed, items)):
            return items
        return changed

    return detach_list


def _is(left: object, right: object) -> bool:
    return left is right


def _quantities(amounts: dict[str, Quantity]) -> dict[str, Quantity]:
    return {name: Quantity.parse(amount) for name, amount in amounts.items()}
