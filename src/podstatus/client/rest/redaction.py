"""Remove the client's credentials from the messages of a server.

A server may repeat them: `Got more than 8190 bytes when reading: b'Bearer eyJ…'`. Not only the
whole header is removed, but every part of it that is long enough to be useful.
"""

import base64
import binascii

_MASK = "…"
_WINDOW = 8
"""Characters. A part of a secret that is at least this long is removed."""
_MIN_SECRET = 4
"""Shorter secrets are not removed: they are parts of ordinary words."""
_MAX_SECRET = 1 << 16
"""Characters. No server accepts a longer header; its message about one is removed completely."""


def authorization_secrets(authorization: str | None) -> tuple[str, ...]:
    """Return the secrets of an Authorization header: the token, or the password, also encoded."""
    scheme, _, value = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return (value,) if value else ()
    try:
        password = base64.b64decode(value).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        password = ""
    return tuple(filter(None, (value, password)))


def redact_secrets(text: str, secrets: tuple[str, ...]) -> str:
    """Return the text with all parts of the secrets masked."""
    for secret in secrets:
        text = _remove_secret(text, secret)
    return text


def _remove_secret(text: str, secret: str) -> str:
    if len(secret) > _MAX_SECRET:
        return _MASK
    width = min(_WINDOW, len(secret))
    if width < _MIN_SECRET:
        return text
    parts, begin, at = [], 0, 0
    while at <= len(text) - width:
        if text[at : at + width] not in secret:
            at += 1
            continue
        parts.append(text[begin:at])
        begin = at = _match_end(text, secret, at, width)
    return _MASK.join([*parts, text[begin:]])


def _match_end(text: str, secret: str, at: int, width: int) -> int:
    """Return the end of the part of a secret that starts at `at`."""
    while at <= len(text) - width and text[at : at + width] in secret:
        at += 1
    return at + width - 1
