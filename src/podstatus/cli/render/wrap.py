"""Put a text into lines that are not too long: between words, and inside of one that is a line of
its own only where a reader would, as after a comma in JSON."""

import re

_BREAK = re.compile(r"[,;:}\])/&|?=]+|(?<=[^\W_])[-_.]")
"""After which a word may go on in the next line."""


def wrap_text(text: str, width: int) -> list[str]:
    """The lines, with single spaces; nothing of the words is lost."""
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
    """A word that is too long for any line, begun in a line that has some words already."""
    lines: list[str] = []
    head = f"{line} " if line else ""
    while len(head) + len(word) > width:
        seam = _last_break(word, width - len(head))
        if not seam and head:
            lines.append(line)
            head = ""
            continue
        at = seam or width
        lines.append(f"{head}{word[:at]}")
        head, word = "", word[at:]
    return [*lines, f"{head}{word}"]


def _last_break(word: str, room: int) -> int:
    """Where the word is best cut; 0 if nowhere."""
    return max((seam.end() for seam in _BREAK.finditer(word, 0, max(0, room))), default=0)
