"""What a probe says over time, as a value: `-4s+5s*` fails for 4 s, passes for 5 s, and again.

A step is a sign and how long it lasts. Only the last may go without: then it stays so.
"""

import re

import msgspec

from podstatus.runtime.simulated.model.durations import DURATION_PATTERN, to_nanos

_STEP_PATTERN = re.compile(rf"([+?-])(?:{DURATION_PATTERN})?")
_SIGNS = {"+": True, "-": False, "?": None}


class TimelineError(ValueError):
    """A text is no timeline."""


class TimelineStep(msgspec.Struct, frozen=True, array_like=True):
    """What is said for so many nanoseconds."""

    says: bool | None
    """None: nothing yet."""
    nanos: int | None = None
    """None: for ever."""


class Timeline(msgspec.Struct, frozen=True):
    """Steps from a beginning on; without any it passes at once."""

    steps: tuple[TimelineStep, ...] = (TimelineStep(True),)
    repeats: bool = False

    def __post_init__(self) -> None:
        if not self.steps or any(step.nanos is None for step in self.steps[:-1]):
            raise TimelineError("only the last step may last for ever")
        if self.repeats and not all(step.nanos for step in self.steps):
            raise TimelineError("what is repeated must have lengths")

    def at(self, elapsed: int) -> tuple[bool | None, int | None]:
        """What is said after so many nanoseconds, and how long after the beginning it ends."""
        round_began, left = self._find_cycle(elapsed)
        ends = round_began
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
    """Read a timeline. Raises TimelineError."""
    repeats = text.endswith("*")
    body = text.removesuffix("*")
    found = list(_STEP_PATTERN.finditer(body))
    if not found or "".join(match[0] for match in found) != body:
        raise TimelineError(text)
    return Timeline(tuple(_parse_step(*match.groups()) for match in found), repeats)


def _parse_step(sign: str, number: str | None, unit: str | None) -> TimelineStep:
    if number is None or unit is None:
        return TimelineStep(_SIGNS[sign])
    return TimelineStep(_SIGNS[sign], to_nanos(number, unit))
