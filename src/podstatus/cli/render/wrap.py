"""Wrap text between words; a word longer than a line is split after punctuation if possible,
such as a comma in JSON."""

import re

_BREAK = re.compile(r"[,;:}\])/&|?=]+|(?<=[^\W_])[-_.]")
"""Matches the characters after which a word may be split."""


def wrap_text(text: str, width: int) -> list[str]:
    """Wrap text to `width`; whitespace is collapsed to single spaces."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if len(longer) <= width:
            line = longer
        elif len(word) <= width:
            lines.append(line)
            line = word
        else:
            *full, line = _wrap_word(line, word, width)
            lines += full
    return [*lines, line] if line else lines


def _wrap_word(line: str, word: str, width: int) -> list[str]:
    """Split a word that is longer than a line, starting at the end of `line`."""
    lines: list[str] = []
    head = f"{line} " if line else ""
    while len(head) + len(word) > width:
        split = _last_break(word, width - len(head))
        if not split and head:
            lines.append(line)
            head = ""
            continue
        at = split or width
        lines.append(f"{head}{word[:at]}")
        head, word = "", word[at:]
    return [*lines, f"{head}{word}"]


def _last_break(word: str, limit: int) -> int:
    """The last position within `limit` where the word may be split; 0 if there is none."""
    return max((match.end() for match in _BREAK.finditer(word, 0, max(0, limit))), default=0)
