"""Escape control characters in untrusted text before it is written to a terminal.

The output of a container or the message of a server may contain sequences that move the cursor,
change the window title, or make the terminal send input. Such characters are replaced by a visible
form, as by `cat -v`: the escape character by `^[`. Tabs and newlines are kept.
"""

import codecs
import re
from typing import Final

_CARET_BELOW: Final = 0x20
_DELETE: Final = 0x7F
_BYTES_END: Final = 0x100
_PLANE_END: Final = 0x10000

_CONTROL_CHARS: Final = re.compile(
    "["
    "\\x00-\\x08\\x0b-\\x1f"  # C0 except tab and newline; a carriage return overwrites the line
    "\\x7f-\\x9f"  # delete, and C1: for some terminals U+009B equals the escape character and [
    "\\xad\\u061c\\u180e\\u200b\\u200e\\u200f"  # invisible, or change the text direction
    "\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb"
    "\\ud800-\\udfff"  # surrogates, which cannot be encoded, and escaped invalid bytes
    "\\U000e0000-\\U000e007f"  # invisible tags
    "]"
)


def escape_control_chars(text: str) -> str:
    """Return the text with control characters in a visible form."""
    return _CONTROL_CHARS.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < _CARET_BELOW or code == _DELETE:
        return f"^{chr(code ^ 0x40)}"
    if code < _BYTES_END:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _PLANE_END else f"\\U{code:08x}"


class ControlCharEscaper:
    """Incremental version for bytes in arbitrary pieces; invalid UTF-8 becomes `\\xff`."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def feed(self, data: bytes) -> str:
        """Return the text so far; an incomplete character is kept for the next call."""
        return escape_control_chars(self._decoder.decode(data))

    def flush(self) -> str:
        """Return the remaining text at the end of the input."""
        return escape_control_chars(self._decoder.decode(b"", final=True))
