"""What a campaign shows: a line every ten seconds, a table at the end, evidence if it fails."""

import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

MOST_SHOWN = 12


class Tally(msgspec.Struct, kw_only=True):
    """What was counted."""

    tried: Counter[str] = msgspec.field(default_factory=Counter)
    survived: Counter[str] = msgspec.field(default_factory=Counter)
    groups: Counter[str] = msgspec.field(default_factory=Counter)
    """Tried, by group."""
    calms: int = 0
    longest_recovery: float = 0.0
    open: Counter[str] = msgspec.field(default_factory=Counter)
    """Tried since all was calm."""

    @property
    def faults(self) -> int:
        return self.tried.total()

    def try_(self, name: str, group: str) -> None:
        """A fault happened."""
        self.tried[name] += 1
        self.groups[group] += 1
        self.open[name] += 1

    def recovered(self, seconds: float) -> None:
        """All invariants held so long after the last fault."""
        self.survived += self.open
        self.open.clear()
        self.calms += 1
        self.longest_recovery = max(self.longest_recovery, seconds)


class Report:
    """Says what happens."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long it goes on."""
        return time.monotonic() - self._began

    def say(self, text: str) -> None:
        """A line, with the time."""
        minutes, seconds = divmod(int(self.seconds), 60)
        sys.stdout.write(f"{minutes:3}:{seconds:02}  {text}\n")
        sys.stdout.flush()

    def complain(self, complaints: Iterable[str], how: Mapping[str, object]) -> None:
        """What is wrong, and how to get there again."""
        self.say("VIOLATED")
        every = list(complaints)
        shown = every[:MOST_SHOWN]
        sys.stdout.write("".join(f"        {complaint}\n" for complaint in shown))
        if len(every) > len(shown):
            sys.stdout.write(f"        and {len(every) - len(shown)} more\n")
        sys.stdout.write("".join(f"    {name:<14}{value}\n" for name, value in how.items()))
        sys.stdout.flush()


def fault_table(tally: Tally, not_tried: Mapping[str, str]) -> str:
    """Faults tried and survived."""
    rows = [(name, str(tried), str(tally.survived[name])) for name, tried in tally.tried.items()]
    rows.sort()
    total = ("all", str(tally.faults), str(tally.survived.total()))
    rows += [total, *((name, "-", f"not tried: {why}") for name, why in not_tried.items() if why)]
    return table(("fault", "tried", "survived"), rows)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """In the way of Markdown, so that it can be put into the docs."""
    every = [head, *rows]
    widths = [max(len(row[column]) for row in every) for column in range(len(head))]
    lines = [
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in every
    ]
    rule = "-|-".join("-" * width for width in widths)
    return "".join(f"| {line} |\n" for line in (lines[0], rule, *lines[1:]))
