"""The Strategy of a resource: defaults, validation, selectable fields, deletion.

Also the rules that all strategies share: metadata on updates, and the round trip of a document
through its Go type, which checks types, drops unknown fields, omits empty ones and normalizes times
and quantities. Documents are plain JSON values and are never modified: a strategy returns new ones.

Upstream: apiserver v0.36.4, pkg/registry/rest/update.go.
"""

import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, Protocol

import msgspec
from msgspec import structs

from podstatus.kube.encoding.codec import DecodeError, from_document, to_document
from podstatus.kube.encoding.wire import Wire, strip_none
from podstatus.kube.scalars.time import Time
from podstatus.kube.validation.field_errors import FieldError

Document = dict[str, Any]


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a DELETE asks for."""

    grace_period_seconds: int | None = None
    uid: str | None = None
    """Precondition."""
    resource_version: str | None = None
    """Precondition."""
    propagation_policy: str | None = None
    dry_run: bool = False


class Strategy(Protocol):
    """The rules of one resource. The server itself sees to names, UIDs, resource versions,
    creation times, managed fields, finalizers and preconditions."""

    @property
    def allow_create_on_update(self) -> bool:
        """Whether a PUT makes an object that is not there."""

    @property
    def allow_unconditional_update(self) -> bool:
        """Whether a PUT may go without a resource version; if not, it is invalid."""

    def decode(self, document: Document) -> Document:
        """The object as the server reads it: types checked, defaults filled in. Doing it again
        changes nothing, and `prepare_create` and `prepare_update` do it by themselves.

        Raises ShapeError, to be answered with 400 if a whole object was sent (before anything
        else is looked at) and with 422 after a patch.
        """

    def decode_patched(self, document: Document, old: Document) -> Document:
        """What a patch made of `old`, a stored object, as the server reads it: like `decode`,
        but what the two share (the very same object, not an equal one) was read before.

        Raises ShapeError.
        """

    def unknown_fields(self, document: Document) -> list[str]:
        """The paths of fields that `decode` drops, for those who asked for strict validation."""

    def prepare_create(self, document: Document) -> Document:
        """The object as it is stored at first: defaults filled in, what clients may not set
        taken away (a pod's status becomes Pending with its QoS class), generation 1 if the
        resource has generations. The server has set the creation time before."""

    def validate_create(self, document: Document) -> list[FieldError]:
        """What is wrong with a new, prepared object."""

    def prepare_update(self, new: Document, old: Document, subresource: str) -> Document:
        """The object as an update leaves it: what the (sub)resource does not own is the old
        one's; the generation grows if the spec changed."""

    def update_decoded(self, new: Document, old: Document, subresource: str) -> Document:
        """`prepare_update` of an object that was decoded already."""

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[FieldError]:
        """What is wrong with a prepared update."""

    def grace_period(self, document: Document, options: DeleteOptions) -> int:
        """For how many seconds the object stays after DELETE; 0 to remove it at once."""

    def validate_delete(self, document: Document, options: DeleteOptions) -> list[FieldError]:
        """What is wrong with the options of a DELETE."""

    def fields(self, document: Document) -> dict[str, str]:
        """What field selectors can ask for, besides metadata.name and metadata.namespace."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of the Table that `kubectl get` prints."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    """0 is always shown, 1 with `-o wide`."""


class Printer(Protocol):
    """How objects of a resource look in a Table."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, in order."""

    def cells(self, document: Document, now: Time) -> list[Any]:
        """One cell per column."""

    def conditions(self, document: Document) -> list[Document]:
        """What a row says about the object as a whole: whether it has run to its end."""


_PRESERVED_FIELDS = ("name", "namespace", "uid", "deletionGracePeriodSeconds")
_IMMUTABLE_FIELDS = ("generation", "creationTimestamp")


def prepare_meta_update(new: Document, old: Document) -> Document:
    """The object with the metadata that an update cannot take away or change."""
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
    """The object with these fields of its metadata set, or taken away if they are None."""
    meta = dict(document.get("metadata") or {}) | changes
    kept = {key: value for key, value in meta.items() if value is not None}
    return document | {"metadata": kept}


class MalformedObjectError(ValueError):
    """A document is not of the shape that its kind demands; the message says where and why.

    To be answered with 400 where a whole object was sent, with 422 after a patch.
    """


def roundtrip(document: Document, kind: type[Wire]) -> Document:
    """A copy of the document as its type prints it. Raises ShapeError."""
    try:
        return to_document(from_document(document, kind))
    except DecodeError as error:
        raise MalformedObjectError(str(error)) from error


def unknown_fields(document: Any, declared: Any, path: str = "") -> Iterator[str]:
    """The paths of fields that would be dropped, which strict field validation refuses."""
    declared, _ = strip_none(declared)
    arguments = typing.get_args(declared)
    if isinstance(document, list) and typing.get_origin(declared) is tuple:
        for index, item in enumerate(document):
            yield from unknown_fields(item, arguments[0], f"{path}[{index}]")
    elif isinstance(document, dict) and isinstance(declared, type) and issubclass(declared, Wire):
        known = _fields(declared)
        for key, item in document.items():
            inner = f"{path}.{key}" if path else key
            if key in known:
                yield from unknown_fields(item, known[key], inner)
            else:
                yield inner


@cache
def _fields(kind: type[Wire]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {info.encode_name: hints[info.name] for info in structs.fields(kind)}
