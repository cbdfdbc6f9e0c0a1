"""Why a strategic merge patch cannot be made or applied, classed by whose mistake it is.

PatchError             the documents do not fit the schema or each other
├── PatchFormatError   a directive in the patch is malformed: its author must write another
└── NestedListError    a list of lists in a place where lists are merged: not supported
"""


class PatchError(ValueError):
    """The patch cannot be made or applied."""


class PatchFormatError(PatchError):
    """A directive ($retainKeys, $setElementOrder, …) is malformed."""


class NestedListError(PatchError):
    """Lists of lists cannot be merged."""
