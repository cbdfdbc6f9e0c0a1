"""Documents as kube-apiserver would print them again, after it has read them.

Reading checks types and drops fields that nobody knows; printing leaves out what is empty,
writes what is never left out, and respells times and quantities.
"""

import typing
from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec import structs

from podstatus.apiserver.strategy import Document
from podstatus.kube.encoding.codec import DecodeError, from_document, to_document
from podstatus.kube.encoding.wire import Wire, strip_none


class ShapeError(ValueError):
    """A document is not of the shape that its kind demands; the message says where and why.

    To be answered with 400 where a whole object was sent, with 422 after a patch.
    """


def shaped(document: Document, kind: type[Wire]) -> Document:
    """A copy of the document as its type prints it. Raises ShapeError."""
    try:
        return to_document(from_document(document, kind))
    except DecodeError as error:
        raise ShapeError(str(error)) from error


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
