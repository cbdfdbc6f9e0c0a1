"""Text of others that a terminal shows and does not obey.

What a container prints, or a server says, may hold sequences that move the cursor, rename the
window, or have the terminal type. Characters that do something instead of being seen are shown by
name, as `cat -v` does: the escape as `^[`. Tabs and newlines stay.
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
    "\\x00-\\x08\\x0b-\\x1f"  # C0 without tab and newline; a carriage return writes over a line
    "\\x7f-\\x9f"  # delete, and C1: to some terminals U+009B is what the escape and [ are
    "\\xad\\u061c\\u180e\\u200b\\u200e\\u200f"  # unseen, or turn the direction of what follows
    "\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb"
    "\\ud800-\\udfff"  # halves of characters, or bytes that are none: nobody can encode them
    "\\U000e0000-\\U000e007f"  # unseen tags
    "]"
)


def escape_control_chars(text: str) -> str:
    """The text with all that a terminal would obey shown instead."""
    return _CONTROL_CHARS.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < _CARET_BELOW or code == _DELETE:
        return f"^{chr(code ^ 0x40)}"
    if code < _BYTES_END:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _PLANE_END else f"\\U{code:08x}"


class ControlCharEscaper:
    """The same for bytes that come in pieces, cut anywhere; what is no UTF-8 becomes `\\xff`."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def feed(self, data: bytes) -> str:
        """What can be shown so far; the beginning of a character waits for the rest."""
        return escape_control_chars(self._decoder.decode(data))

    def flush(self) -> str:
        """What is left."""
        return escape_control_chars(self._decoder.decode(b"", final=True))
