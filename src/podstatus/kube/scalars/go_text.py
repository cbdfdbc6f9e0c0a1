"""Strings as Go handles and prints them.

A Go string may contain invalid UTF-8; in this library such a byte is a lone surrogate
(`surrogateescape`).
"""

import re
from typing import Final

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_SHORT_ESCAPES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}


_INTEGER: Final = re.compile("([+-]?)0*([0-9]{1,19})")


def parse_int64(text: str) -> int | None:
    """Return the number as Go parses it, None if it is none or does not fit into 64 bits."""
    match = _INTEGER.fullmatch(text)
    number = int(match[1] + match[2]) if match else 2**63
    return number if -(2**63) <= number < 2**63 else None


def valid_text(text: str) -> str:
    """Return the text as JSON can encode it: each invalid byte becomes U+FFFD."""
    if text.isascii():
        return text
    return "".join(REPLACEMENT if _is_surrogate(char) else char for char in text)


def truncate_bytes(text: str, limit: int) -> str:
    """Return the first `limit` bytes; a character cut in two leaves invalid bytes."""
    if len(text) * 4 <= limit or (text.isascii() and len(text) <= limit):
        return text
    data = _to_bytes(text)
    if len(data) <= limit:
        return text
    return data[:limit].decode("utf-8", "surrogateescape")


def _to_bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Half of a surrogate pair is no byte and cannot occur in a Go string.
        return valid_text(text).encode()


def go_quoted(text: str) -> str:
    """Return the text as Go's `%q` prints it."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if _is_surrogate(char):
        return f"\\x{code & 0xFF:02x}"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_surrogate(char: str) -> bool:
    return "\ud800" <= char <= "\udfff"
