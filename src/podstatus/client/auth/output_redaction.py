"""Lines of other programs, fit to be shown: one line, not too long, no secrets."""

import re
from typing import Final

_MAX_LINE_LENGTH: Final = 300
_MASK: Final = "…"

_SECRETS: Final = (
    re.compile(r"(?i)(\bauthorization[\"']?\s*[:=]\s*).+"),
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)[^\s\"',;]+"),
    # What follows a word that announces a secret, up to the next blank or quote.
    re.compile(
        r"(?i)((?:token|secret|passw(?:or)?d|pwd|passphrase|api[-_]?key|private[-_]?key|assertion"
        r"|session|signature)[\"'\w-]*\s*[:=]\s*[\"']?)[^\s\"',;]+"
    ),
    re.compile(r"(?i)((?:token|secret|password|key)\s+(?:is\s+)?)(?=\S*\d)\S{6,}"),
    # A user and a password in an address.
    re.compile(r"(://)[^/\s@]+(?=@)"),
)
_RUN: Final = re.compile(r"[A-Za-z0-9+/_=.~-]{20,}")
"""Long enough for a token; one of words, as in a path, a name or a variable, is let through."""
_WORD: Final = re.compile(
    r"[./_=-]*(?:(?:[A-Z]?[a-z]{2,20}){1,6}|[a-z]|[A-Z]{1,20}|[0-9]{1,4})(?:[./_=-]+|$)"
)


def redact_line(text: str) -> str:
    """The last line with something in it, without what looks like a secret."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    line = "".join(char if char.isprintable() else " " for char in lines[-1]).strip()
    for pattern in _SECRETS:
        line = pattern.sub(rf"\1{_MASK}", line)
    line = _RUN.sub(lambda found: _mask_unless_words(found[0]), line)
    return line if len(line) <= _MAX_LINE_LENGTH else line[:_MAX_LINE_LENGTH] + _MASK


def _mask_unless_words(run: str) -> str:
    return _MASK if _WORD.sub("", run) else run
