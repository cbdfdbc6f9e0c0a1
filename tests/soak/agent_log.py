"""What an agent's log says that it should never have to say."""

import re
from pathlib import Path

_RECORD = re.compile(r"^(?=\d{4}-\d\d-\d\dT)", re.MULTILINE)
_FORESEEN = ("No space left on device",)
"""A full disk is the campaign's doing."""


class AgentLog:
    """Reads on from where it was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def complaints(self) -> list[str]:
        """Of what was written since the last time."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        self._read += len(new)
        return [f"{self._path}: {it}" for it in tracebacks(new.decode(errors="replace"))]


def tracebacks(text: str) -> list[str]:
    """The last lines of those that nobody foresaw, with what was said before them."""
    found = []
    for record in _RECORD.split(text):
        if "Traceback" in record and not any(word in record for word in _FORESEEN):
            lines = record.strip().splitlines()
            found.append(f"{lines[0]} … {lines[-1]}")
    return found
