"""Strategic merge patches: made, applied and written as Kubernetes does.

    patch = create_two_way_patch(old, new, POD)
    assert apply_patch(old, patch, POD) == new
    body = encode_document(patch)

Documents are plain JSON values with whole numbers of at most 64 bits. They are never changed;
results share with them what stays the same. Errors: see `patch_errors`.
"""

from podstatus.kube.documents import Document, JsonValue, encode_document
from podstatus.kube.patch_apply import apply_patch
from podstatus.kube.patch_create import create_two_way_patch
from podstatus.kube.patch_errors import NestedListError, PatchError, PatchFormatError
from podstatus.kube.schemas import EVENT, NODE, POD, Schema, schema_of

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
