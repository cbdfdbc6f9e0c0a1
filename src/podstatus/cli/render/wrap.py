"""Wrap text between words; a word longer than a line is split after punctuation if possible,
such as a comma in JSON."""

import re

from rich.cells import cell_len, set_cell_size

_BREAK = re.compile(r"[,;:}\])/&|?=]+|(?<=[^\W_])[-_.]")
"""Matches the characters after which a word may be split."""


def wrap_text(text: str, width: int) -> list[str]:
    """Wrap text to `width` terminal columns; whitespace is collapsed to single spaces."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if cell_len(longer) <= width:
            line = longer
        elif cell_len(word) <= width:
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
    while cell_len(head + word) > width:
        fitting = len(set_cell_size(word, max(0, width - cell_len(head))).rstrip())
        split = _last_break(word, fitting)
        if not split and head:
            lines.append(line)
            head = ""
            continue
        at = split or max(1, fitting)
        lines.append(f"{head}{word[:at]}")
        head, word = "", word[at:]
    return [*lines, f"{head}{word}"]


def _last_break(word: str, limit: int) -> int:
    """The last position within `limit` where the word may be split; 0 if there is none."""
    return max((match.end() for match in _BREAK.finditer(word, 0, limit)), default=0)
