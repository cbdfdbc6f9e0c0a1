"""Continue tokens of paginated lists.

A token holds the resource version of the list and the last key, so that all pages show the same
state. It is sent back by the client, so nothing in it is trusted.

Upstream: DecodeContinue and EncodeContinue, pkg/storage/continue.go, apiserver v0.36.4.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, NoReturn

import msgspec

from podstatus.apiserver.http.errors import bad_request
from podstatus.base.msgspec_json import decode_json

NEWEST = -1
"""Replaces the resource version in a token: continue with the current state."""

_FORMAT_VERSION = "meta.k8s.io/v1"
_BASE64 = re.compile("[A-Za-z0-9_-]*")
_KEY_SUFFIX = "\0"
"""Appended to a key: no other key sorts between the two."""


class _Token(msgspec.Struct):
    v: str = ""
    rv: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] = 0
    start: str = ""


def encode_continue(version: int, key: tuple[str, str]) -> str:
    """Return the token of a list at this version; `key` is that of the last object sent."""
    start = "/".join(filter(None, key)) + _KEY_SUFFIX
    data = msgspec.json.encode(_Token(_FORMAT_VERSION, version, start))
    return urlsafe_b64encode(data).decode().rstrip("=")


def decode_continue(text: str) -> tuple[int, tuple[str, str]]:
    """Return the version (or `NEWEST`) and the key after which the list continues.

    Raises StatusError (400).
    """
    token = _decode(text)
    if token.v != _FORMAT_VERSION:
        _raise_invalid(f": server does not recognize this encoded version {token.v}")
    if not token.rv:
        _raise_invalid(f": incorrect encoded start resourceVersion (version {_FORMAT_VERSION})")
    if not token.start:
        _raise_invalid(f": encoded start key empty (version {_FORMAT_VERSION})")
    parts = token.start.removesuffix(_KEY_SUFFIX).removeprefix("/").split("/")
    if len(parts) > 2 or not {"", ".", ".."}.isdisjoint(parts):
        _raise_invalid(f": {token.start}")
    return token.rv, ("/".join(parts[:-1]), parts[-1])


def _decode(text: str) -> _Token:
    if not _BASE64.fullmatch(text) or len(text) % 4 == 1:
        _raise_invalid(": illegal base64 data")
    try:
        return decode_json(urlsafe_b64decode(text + "=" * (-len(text) % 4)), _Token)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _raise_invalid(f": {error}")


def _raise_invalid(message: str) -> NoReturn:
    raise bad_request(f"invalid continue token: continue key is not valid{message}")
