"""Semantic equality: nil and empty are equal, quantities compare by value.

Upstream: equality.Semantic, apimachinery v0.36.4.
"""

from typing import Any

from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.scalars.quantity import Quantity


def semantic_equal(left: Any, right: Any) -> bool:
    if left is right or left == right:
        return True
    if isinstance(left, Wire):
        return type(left) is type(right) and all(
            semantic_equal(getattr(left, name), getattr(right, name))
            for name in left.__struct_fields__
        )
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return left.compare(right) == 0
    if isinstance(left, dict) or isinstance(right, dict):
        return _maps_equal(left or {}, right or {})
    if isinstance(left, tuple) or isinstance(right, tuple):
        return _lists_equal(left or (), right or ())
    return False


def _maps_equal(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return left.keys() == right.keys() and all(
        semantic_equal(item, right[key]) for key, item in left.items()
    )


def _lists_equal(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return len(left) == len(right) and all(map(semantic_equal, left, right))
