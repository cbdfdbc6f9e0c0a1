"""The base class of strategies: defaults, validation, selectable fields and deletion of a resource.

Also the rules that all strategies share: metadata on updates, and the round trip of a document
through its Go type, which checks types, drops unknown fields, omits empty ones and normalizes times
and quantities. Documents are plain JSON values and are never modified: a strategy returns new ones.

Upstream: apiserver v0.36.4, pkg/registry/rest/update.go.
"""

from typing import Any

from podstatus.kube.encoding.codec import DecodeError, from_document, to_document
from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.objects.cluster import DeleteOptions
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.validation.field_errors import FieldError
from podstatus.kube.validation.meta import validate_meta, validate_meta_update
from podstatus.kube.validation.names import NameRule, dns_subdomain

Document = dict[str, Any]


class MalformedObjectError(ValueError):
    """The document does not match its type; the message names the field and the reason.

    400 if a whole object was sent, 422 after a patch.
    """


class Strategy:
    """The rules of one resource; these validate its metadata only.

    Names, UIDs, resource versions, creation times, managed fields, finalizers and preconditions are
    the registry's.
    """

    allow_create_on_update = False
    """Whether a PUT creates an object that does not exist."""
    allow_unconditional_update = True
    """Whether a PUT may omit the resource version; if not, it is rejected as invalid."""
    kind: type[Wire]
    name_rule: NameRule = staticmethod(dns_subdomain)
    namespaced = True
    qualified_finalizers = True

    def decode(self, document: Document) -> Document:
        """Return the object with types checked and defaults set. Idempotent.

        `prepare_create` calls it.

        Raises MalformedObjectError: 400 if a whole object was sent (before any other check), 422
        after a patch.
        """
        return roundtrip(document, self.kind)

    def decode_patched(self, document: Document, old: Document) -> Document:
        """Decode `document`, the result of a patch of the stored object `old`.

        Like `decode`, but parts that both share (the same Python object, not an equal one) may be
        reused, since they were decoded when they were stored.

        Raises MalformedObjectError.
        """
        del old
        return self.decode(document)

    def prepare_create(self, document: Document) -> Document:
        """Return the object as first stored.

        Sets defaults, removes what clients may not set (a pod's status becomes Pending with its QoS
        class), and sets generation 1 if the resource has generations. The creation time is already
        set.
        """
        return self.decode(document)

    def validate_create(self, document: Document) -> list[FieldError]:
        """Return the field errors of a new, prepared object."""
        errors = validate_meta(
            _meta(document),
            self.name_rule,
            namespaced=self.namespaced,
            qualified=self.qualified_finalizers,
        )
        return errors + self.validate_content(document, None)

    def prepare_update(self, new: Document, old: Document, subresource: str) -> Document:
        """Return the object after an update to `new`, which has been decoded.

        Fields that the (sub)resource does not own keep their old values; the generation is bumped
        if the spec changed.
        """
        del subresource
        return prepare_meta_update(new, old)

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[FieldError]:
        """Return the field errors of a prepared update."""
        del subresource
        qualified = self.qualified_finalizers
        errors = validate_meta_update(_meta(new), _meta(old), qualified=qualified)
        return errors + self.validate_content(new, old)

    def validate_content(self, new: Document, old: Document | None) -> list[FieldError]:
        """Return the field errors beside those of the metadata; `old` is None for a new object."""
        del new, old
        return []

    def grace_period(self, document: Document, options: DeleteOptions) -> int:
        """Return the seconds until removal after a DELETE; 0 removes the object at once."""
        del document, options
        return 0

    def fields(self, document: Document) -> dict[str, str]:
        """Return the selectable fields other than metadata.name and metadata.namespace."""
        del document
        return {}


def _meta(document: Document) -> ObjectMeta:
    return from_document(document.get("metadata") or {}, ObjectMeta)


_PRESERVED_FIELDS = ("name", "namespace", "uid", "deletionGracePeriodSeconds")
_IMMUTABLE_FIELDS = ("generation", "creationTimestamp")


def prepare_meta_update(new: Document, old: Document) -> Document:
    """Return the new object with the metadata that an update must not remove or change."""
    before = old.get("metadata") or {}
    meta = dict(new.get("metadata") or {})
    for key in _PRESERVED_FIELDS:
        if key in before and not meta.get(key):
            meta[key] = before[key]
    for key in _IMMUTABLE_FIELDS:
        meta.pop(key, None)
        if key in before:
            meta[key] = before[key]
    if before.get("deletionTimestamp"):
        meta["deletionTimestamp"] = before["deletionTimestamp"]
    return new | {"metadata": meta}


def with_meta(document: Document, **changes: object) -> Document:
    """Return the object with these metadata fields set; None removes a field."""
    meta = dict(document.get("metadata") or {}) | changes
    present = {key: value for key, value in meta.items() if value is not None}
    return document | {"metadata": present}


def roundtrip(document: Document, kind: type[Wire]) -> Document:
    """Return the document as its type encodes it. Raises MalformedObjectError."""
    try:
        return to_document(from_document(document, kind))
    except DecodeError as error:
        raise MalformedObjectError(str(error)) from error
