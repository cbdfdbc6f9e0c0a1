"""Every way that was tried to break out, with what came of it: a table at the end of a test run."""

import errno
import re
from collections.abc import Iterable, Iterator, Mapping

PROPERTY = "ways to break out"
_NUMBER = re.compile(r"\[Errno (\d+)\]")
_WIDTH = 60


def in_short(came: object) -> str:
    """EPERM, SIGSYS, …; what was not refused is shown at length."""
    text = str(came)
    if not text.startswith("refused: "):
        return text[:_WIDTH]
    if found := _NUMBER.search(text):
        return errno.errorcode.get(int(found[1]), found[0])
    return text.removeprefix("refused: ").removeprefix("killed by ")[:_WIDTH]


def table(title: str, runs: Mapping[str, Mapping[str, object]]) -> list[str]:
    """A line for each way, a column for each run that tried it."""
    ways = list(dict.fromkeys(way for came in runs.values() for way in came))
    rows = [("way", *runs)]
    rows += [(way, *(in_short(runs[run].get(way, "-")) for run in runs)) for way in ways]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    tried = sum(len(came) for came in runs.values())
    shown = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return [f"{title}: {len(ways)} ways, tried {tried} times", *shown]


def tables(properties: Iterable[tuple[str, object]]) -> Iterator[str]:
    """The lines of those that tests have recorded."""
    for name, value in properties:
        if name == PROPERTY:
            yield from (str(line) for line in value) if isinstance(value, list) else ()
