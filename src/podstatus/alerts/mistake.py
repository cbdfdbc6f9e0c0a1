"""What is wrong with a file of rules, and where."""

from collections.abc import Iterable

import msgspec

from podstatus.alerts.rule import Place


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """Something that has to be mended."""

    place: Place
    message: str
    rule: str = ""
    """The rule that cannot be asked because of it, if it has a name that can be told."""

    def told(self, file: str, kind: str = "") -> str:
        """As compilers tell it, so that editors find the place; `kind` may be `note: `."""
        return f"{file}:{self.place.line}:{self.place.column}: {kind}{self.message}"


def in_order(mistakes: Iterable[Mistake]) -> tuple[Mistake, ...]:
    """As they stand in the file, none twice."""
    found = {(m.place.line, m.place.column, m.message): m for m in mistakes}
    return tuple(found[key] for key in sorted(found))
