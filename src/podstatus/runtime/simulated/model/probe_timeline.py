"""Probe results over time: `-4s+5s*` fails for 4 s, passes for 5 s, and repeats.

A step is a sign and a duration. Only the last step may omit the duration; it then lasts forever.
"""

import re

import msgspec

from podstatus.kube.scalars.duration import parse_duration

_DURATION_PATTERN = r"[0-9]{1,6}(?:\.[0-9]{1,6})?(?:ms|s|m|h)"
"""500ms, 3s, 1.5m, 1h. The number is limited to about a century, so that nothing overflows."""
_DURATION = re.compile(_DURATION_PATTERN)
_STEP_PATTERN = re.compile(rf"([+?-])({_DURATION_PATTERN})?")
_SIGNS = {"+": True, "-": False, "?": None}


class TimelineError(ValueError):
    """The text is not a valid timeline."""


class TimelineStep(msgspec.Struct, frozen=True, array_like=True):
    """One result and how long it lasts."""

    says: bool | None
    """None: no result yet."""
    nanos: int | None = None
    """Duration in nanoseconds; None: forever."""


class Timeline(msgspec.Struct, frozen=True):
    """Steps relative to a start time; the default passes at once."""

    steps: tuple[TimelineStep, ...] = (TimelineStep(True),)
    repeats: bool = False

    def __post_init__(self) -> None:
        if not self.steps or any(step.nanos is None for step in self.steps[:-1]):
            raise TimelineError("only the last step may omit its duration")
        if self.repeats and not all(step.nanos for step in self.steps):
            raise TimelineError("every step of a repeating timeline needs a duration")

    def at(self, elapsed: int) -> tuple[bool | None, int | None]:
        """Return the result after `elapsed` ns and the offset in ns at which it ends, if ever."""
        cycle_start, left = self._find_cycle(elapsed)
        ends = cycle_start
        for step in self.steps:
            if step.nanos is None:
                return step.says, None
            ends += step.nanos
            if left < step.nanos:
                return step.says, ends
            left -= step.nanos
        return self.steps[-1].says, None

    def _find_cycle(self, elapsed: int) -> tuple[int, int]:
        if not self.repeats:
            return 0, elapsed
        length = sum(step.nanos or 0 for step in self.steps)
        return elapsed - elapsed % length, elapsed % length


def parse_timeline(text: str) -> Timeline:
    """Parse a timeline. Raises TimelineError."""
    repeats = text.endswith("*")
    body = text.removesuffix("*")
    steps = list(_STEP_PATTERN.finditer(body))
    if not steps or "".join(match[0] for match in steps) != body:
        raise TimelineError(text)
    parsed = (TimelineStep(_SIGNS[step[1]], parse_nanos(step[2] or "")) for step in steps)
    return Timeline(tuple(parsed), repeats)


def parse_nanos(text: str) -> int | None:
    """Return a duration in nanoseconds; None if the text is not a duration of a script."""
    return round(parse_duration(text) * 1e9) if _DURATION.fullmatch(text) else None
