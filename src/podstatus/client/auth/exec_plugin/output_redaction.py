"""Redact the output of other programs: one line, of limited length, without secrets."""

import re
from typing import Final

_MAX_LINE_LENGTH: Final = 300
_MASK: Final = "…"

_SECRETS: Final = (
    re.compile(r"(?i)(\bauthorization[\"']?\s*[:=]\s*).+"),
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)[^\s\"',;]+"),
    # The text after a word that introduces a secret, up to the next space or quote.
    re.compile(
        r"(?i)((?:token|secret|passw(?:or)?d|pwd|passphrase|api[-_]?key|private[-_]?key|assertion"
        r"|session|signature)[\"'\w-]*\s*[:=]\s*[\"']?)[^\s\"',;]+"
    ),
    re.compile(r"(?i)((?:token|secret|password|key)\s+(?:is\s+)?)(?=\S*\d)\S{6,}"),
    # User and password in a URL.
    re.compile(r"(://)[^/\s@]+(?=@)"),
)
_RUN: Final = re.compile(r"[A-Za-z0-9+/_=.~-]{20,}")
"""Long enough for a token; not masked if it consists of words, as a path or a name does."""
_WORD: Final = re.compile(
    r"[./_=-]*(?:(?:[A-Z]?[a-z]{2,20}){1,6}|[a-z]|[A-Z]{1,20}|[0-9]{1,4})(?:[./_=-]+|$)"
)


def redact_line(text: str) -> str:
    """Return the last non-empty line, with likely secrets masked."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    line = "".join(char if char.isprintable() else " " for char in lines[-1]).strip()
    for pattern in _SECRETS:
        line = pattern.sub(rf"\1{_MASK}", line)
    line = _RUN.sub(lambda match: _mask_unless_words(match[0]), line)
    return line if len(line) <= _MAX_LINE_LENGTH else line[:_MAX_LINE_LENGTH] + _MASK


def _mask_unless_words(run: str) -> str:
    return _MASK if _WORD.sub("", run) else run
