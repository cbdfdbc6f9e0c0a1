"""Leave our own credentials out of what a server says.

A server may repeat them: `Got more than 8190 bytes when reading: b'Bearer eyJ…'`. Not only the
whole header is left out, but every part of it that is long enough to be of use.
"""

import base64
import binascii

_MASK = "…"
_WINDOW = 8
"""Characters. A part of a token that is as long as this is never shown."""
_MIN_SECRET = 4
"""Shorter ones are parts of ordinary words."""
_MAX_SECRET = 1 << 16
"""Characters. No server takes a header that is longer; what it says about one is not shown."""


def authorization_secrets(authorization: str | None) -> tuple[str, ...]:
    """What is secret in an Authorization header: the token, or the password in both spellings."""
    scheme, _, value = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return (value,) if value else ()
    try:
        password = base64.b64decode(value).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        password = ""
    return tuple(filter(None, (value, password)))


def redact_secrets(text: str, secrets: tuple[str, ...]) -> str:
    """The text without what is a part of one of the secrets."""
    for secret in secrets:
        text = _remove_secret(text, secret)
    return text


def _remove_secret(text: str, secret: str) -> str:
    if len(secret) > _MAX_SECRET:
        return _MASK
    width = min(_WINDOW, len(secret))
    if width < _MIN_SECRET:
        return text
    kept, begin, at = [], 0, 0
    while at <= len(text) - width:
        if text[at : at + width] not in secret:
            at += 1
            continue
        kept.append(text[begin:at])
        begin = at = _match_end(text, secret, at, width)
    return _MASK.join([*kept, text[begin:]])


def _match_end(text: str, secret: str, at: int, width: int) -> int:
    """Where the part of a secret ends that begins here."""
    while at <= len(text) - width and text[at : at + width] in secret:
        at += 1
    return at + width - 1
