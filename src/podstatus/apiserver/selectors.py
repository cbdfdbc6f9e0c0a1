"""Which objects a list or a watch is about: label selectors and field selectors."""

from podstatus.apiserver.field_selectors import (
    FieldRequirement,
    FieldSelector,
    object_fields,
    parse_field_selector,
)
from podstatus.apiserver.label_selectors import LabelSelector, Requirement, parse_label_selector

__all__ = [
    "FieldRequirement",
    "FieldSelector",
    "LabelSelector",
    "Requirement",
    "object_fields",
    "parse_field_selector",
    "parse_label_selector",
]
