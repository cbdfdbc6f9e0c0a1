"""Strategic merge patches, created, applied and encoded as Kubernetes does.

    patch = create_two_way_patch(old, new, POD)
    assert apply_patch(old, patch, POD) == new
    body = encode_document(patch)

Documents are plain JSON values with integers of at most 64 bits. They are never modified; results
share unchanged parts with them. The errors are in `errors`, the fields and merge keys of each type
in `schema`. Pure. JSON patch and JSON merge patch do not belong here.

Tests: tests/kube/patch.
"""

from podstatus.kube.encoding.go_json import Document, JsonValue, encode_document
from podstatus.kube.patch import apply, create_from_documents
from podstatus.kube.patch.errors import NestedListError, PatchError, PatchFormatError
from podstatus.kube.patch.schema import EVENT, NODE, POD, Schema, schema_of

__all__ = [
    "EVENT",
    "NODE",
    "POD",
    "Document",
    "JsonValue",
    "NestedListError",
    "PatchError",
    "PatchFormatError",
    "Schema",
    "apply_patch",
    "create_two_way_patch",
    "encode_document",
    "schema_of",
]


def create_two_way_patch(original: Document, modified: Document, schema: Schema) -> Document:
    """Return the strategic merge patch from `original` to `modified`. Raises PatchError."""
    try:
        return create_from_documents.create_two_way_patch(original, modified, schema)
    except RecursionError as error:
        raise PatchError("the documents are nested too deeply to be compared") from error


def apply_patch(original: Document, patch: Document, schema: Schema) -> Document:
    """Return `original` with a strategic merge patch applied. Raises PatchError."""
    try:
        return apply.apply_patch(original, patch, schema)
    except RecursionError as error:
        raise PatchError("the patch is nested too deeply to be applied") from error
