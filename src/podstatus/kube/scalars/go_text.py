"""Strings and durations as Go handles and prints them.

A Go string may contain invalid UTF-8; in this library such a byte is a lone surrogate
(`surrogateescape`). Durations are printed as `10s`, `1m20s`, `5m0s`, `1.5s`.

Upstream: Duration.String, time.go of Go 1.26.
"""

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


_SECOND = 1_000_000_000


def go_duration(seconds: float) -> str:
    """Return a duration in seconds as Go prints it."""
    nanos = round(seconds * _SECOND)
    if nanos < 0:
        return f"-{go_duration(-seconds)}"
    for unit, size in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000)):
        if 0 < nanos < size * 1_000:
            return f"{_decimal(nanos, size)}{unit}"
    minutes, rest = divmod(nanos, 60 * _SECOND)
    text = f"{_decimal(rest, _SECOND)}s"
    if minutes:
        text = f"{minutes % 60}m{text}"
    return f"{minutes // 60}h{text}" if minutes >= 60 else text


def _decimal(nanos: int, size: int) -> str:
    whole, part = divmod(nanos, size)
    digits = str(part).zfill(len(str(size)) - 1).rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
