"""Long lists in pages: tokens that say where the next page begins, and how long a page is.

A token holds the resource version of the list and the key after which to go on, so that all
pages show one moment. Its author is the server, but it comes from the client: nothing in it is
trusted.

Upstream: DecodeContinue and EncodeContinue, pkg/storage/continue.go, apiserver v0.36.4.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, NoReturn

import msgspec

from podstatus.apiserver.http.errors import bad_request
from podstatus.base.msgspec_json import decode_json
from podstatus.kube.scalars.go_text import go_quoted

NEWEST = -1
"""In a token instead of a resource version: go on with the list as it is by then."""

_FORM = "meta.k8s.io/v1"
_BASE64 = re.compile("[A-Za-z0-9_-]*")
_INTEGER = re.compile("[+-]?[0-9]+")
_AFTER = "\0"
"""No key lies between a key and this one."""


class _Token(msgspec.Struct):
    v: str = ""
    rv: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] = 0
    start: str = ""


def continue_token(version: int, key: tuple[str, str]) -> str:
    """The token of a list at this version, of which the last object so far has this key
    (namespace and name)."""
    start = "/".join(filter(None, key)) + _AFTER
    data = msgspec.json.encode(_Token(_FORM, version, start))
    return urlsafe_b64encode(data).decode().rstrip("=")


def read_continue_token(text: str) -> tuple[int, tuple[str, str]]:
    """The version (`NEWEST` for whatever it is now) and the key after which the list goes on.

    Raises Problem (400).
    """
    token = _decoded(text)
    if token.v != _FORM:
        _refuse(f": server does not recognize this encoded version {token.v}")
    if not token.rv:
        _refuse(f": incorrect encoded start resourceVersion (version {_FORM})")
    if not token.start:
        _refuse(f": encoded start key empty (version {_FORM})")
    parts = token.start.removesuffix(_AFTER).removeprefix("/").split("/")
    if len(parts) > 2 or not {"", ".", ".."}.isdisjoint(parts):
        _refuse(f": {token.start}")
    return token.rv, ("/".join(parts[:-1]), parts[-1])


def read_limit(text: str) -> int:
    """The parameter `limit`: the length of a page, 0 for all at once. Raises Problem (400)."""
    if not _INTEGER.fullmatch(text):
        raise bad_request(f"strconv.ParseInt: parsing {go_quoted(text)}: invalid syntax")
    limit = int(text) if len(text) < 64 else 2**63
    if not -(2**63) <= limit < 2**63:
        raise bad_request(f"strconv.ParseInt: parsing {go_quoted(text)}: value out of range")
    return max(limit, 0)


def _decoded(text: str) -> _Token:
    if not _BASE64.fullmatch(text) or len(text) % 4 == 1:
        _refuse(": illegal base64 data")
    try:
        return decode_json(urlsafe_b64decode(text + "=" * (-len(text) % 4)), _Token)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _refuse(f": {error}")


def _refuse(why: str) -> NoReturn:
    raise bad_request(f"invalid continue token: continue key is not valid{why}")
