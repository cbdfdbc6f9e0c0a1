"""Which objects a list or a watch is about: label selectors and field selectors."""

from podstatus.apiserver.field_selectors import (
    FieldRequirement,
    FieldSelector,
    object_fields,
    parse_field_selector,
)
from podstatus.apiserver.problems import bad_request
from podstatus.kube import label_selector
from podstatus.kube.label_selector import LabelSelector, LabelSelectorError, Requirement

__all__ = [
    "FieldRequirement",
    "FieldSelector",
    "LabelSelector",
    "Requirement",
    "object_fields",
    "parse_field_selector",
    "parse_label_selector",
]


def parse_label_selector(text: str) -> LabelSelector:
    """Read a `labelSelector`. Raises Problem (400)."""
    try:
        return label_selector.parse_label_selector(text)
    except LabelSelectorError as error:
        raise bad_request(str(error)) from error
