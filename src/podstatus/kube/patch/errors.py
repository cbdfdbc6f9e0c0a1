"""Errors of strategic merge patches, classed by cause.

PatchError             the documents do not match the schema or each other
├── PatchFormatError   a directive in the patch is malformed: the author must fix the patch
└── NestedListError    a list of lists where lists are merged: not supported
"""


class PatchError(ValueError):
    """The patch cannot be created or applied."""


class PatchFormatError(PatchError):
    """A directive ($retainKeys, $setElementOrder, …) is malformed."""


class NestedListError(PatchError):
    """A list of lists cannot be merged."""
