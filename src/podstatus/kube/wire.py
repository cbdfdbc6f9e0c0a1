"""The base of every object that travels, and the defaults that Go prints.

A field with a plain default is left out when it holds Go's zero value (`omitempty`);
a field with a `default_factory` is always printed. Lists and maps are `None` when Go's
are nil, which it prints like an empty one but does not always treat like one.
"""

import msgspec

from podstatus.kube.quantity import Quantity


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A frozen value with Kubernetes' field names on the wire."""


def nil() -> None:
    """Default of a list, map or pointer that Go prints as `null` instead of leaving it out."""


def zero_quantity() -> Quantity:
    """Default of a quantity that Go always prints."""
    return Quantity("0")
