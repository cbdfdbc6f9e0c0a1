"""What an agent's log says that it should never have to say."""

import re
from pathlib import Path

_RECORD = re.compile(r"^(?=\d{4}-\d\d-\d\dT)", re.MULTILINE)
_NEVER = ("Traceback", "was never awaited", "Task was destroyed")
_FORESEEN = ("No space left on device",)
"""A full disk is the campaign's doing."""


class AgentLog:
    """Reads on from where it was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._begun = ""
        """The last record, which may be written on."""

    def complaints(self, *, to_the_end: bool = False) -> list[str]:
        """Of what was written since the last time; of the last record once it is whole."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        self._read += len(new)
        *records, self._begun = _RECORD.split(self._begun + new.decode(errors="replace"))
        if to_the_end:
            records.append(self._begun)
        return [f"{self._path}: {it}" for record in records for it in complaint(record)]


def complaint(record: str) -> list[str]:
    """The first and the last line of a record, if nobody foresaw it."""
    if not any(word in record for word in _NEVER) or any(word in record for word in _FORESEEN):
        return []
    lines = record.strip().splitlines()
    return [f"{lines[0]} … {lines[-1]}"]
