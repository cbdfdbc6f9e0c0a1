"""What can be said of an expression by its text alone, without CEL."""

import re
from collections.abc import Iterable

import msgspec

from podstatus.alerts.model import Place
from podstatus.alerts.rules.facts import CONTAINER_FACTS

MAX_GROWING = 5
"""Calls in an expression that may make more of what they get. CEL does not bound how much: eight
times `replace("x", "xxxxxxxxxx")` make 100 MB of one letter. This is for mistakes, which get
a place in the file; memory itself is bounded where rules are evaluated (rule_budget.py)."""
_TEXTS = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|//[^\n]*")
_EACH = re.compile(r"\bpod\.containers\s*\.\s*\w+\(\s*([A-Za-z_]\w*)\s*,")
_GROWING = re.compile(r"\.\s*(?:replace|join|format|map|optMap|optFlatMap)\s*\(")
_OF_CONTAINERS = frozenset(fact.name for fact in CONTAINER_FACTS)


class Flaw(msgspec.Struct, frozen=True):
    """Something that is wrong with an expression, and where in it."""

    message: str
    place: Place = Place(1, 1)


class ExpressionError(Exception):
    """An expression is wrong; all that was found."""

    def __init__(self, flaws: Iterable[Flaw]) -> None:
        self.flaws = tuple(flaws)
        super().__init__("; ".join(flaw.message for flaw in self.flaws))


def names_of_containers(text: str) -> frozenset[str]:
    """What an expression calls a container: `c` in `pod.containers.exists(c, …)`."""
    return frozenset(found[1] for found in _EACH.finditer(without_texts(text)))


def without_texts(text: str) -> str:
    """Blank where texts and remarks are."""
    return _TEXTS.sub(lambda found: " " * len(found[0]), text)


def wrong_names(bare: str) -> Iterable[Flaw]:
    """Parts of containers that there are not."""
    for each in {found[1] for found in _EACH.finditer(bare)}:
        for found in re.finditer(rf"(?<![\w.])({each})\s*\.\s*(\w+)\b(?!\s*\()", bare):
            if found[2] not in _OF_CONTAINERS:
                known = ", ".join(sorted(_OF_CONTAINERS))
                yield Flaw(
                    f"containers have no {found[2]}, but {known}", _place(bare, found.start(2))
                )


def too_much(bare: str) -> Iterable[Flaw]:
    """The first call beyond `MAX_GROWING` that may make more of what it gets."""
    calls = list(_GROWING.finditer(bare))
    for found in calls[MAX_GROWING : MAX_GROWING + 1]:
        problem = f"map(), join(), replace() and format() are called more than {MAX_GROWING} times"
        yield Flaw(problem, _place(bare, found.start()))


def _place(bare: str, at: int) -> Place:
    before = bare[:at]
    return Place(before.count("\n") + 1, at - before.rfind("\n"))
