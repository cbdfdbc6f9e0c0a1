"""What can be said of an expression by its text alone, without CEL."""

import re
from collections.abc import Iterable

import msgspec

from podstatus.alerts.model import Location
from podstatus.alerts.rules.facts import CONTAINER_FACTS

MAX_EXPANSIONS = 5
"""Calls in an expression that may make more of what they get. CEL does not bound how much: eight
times `replace("x", "xxxxxxxxxx")` make 100 MB of one letter. This is for mistakes, which get
a place in the file; memory itself is bounded where rules are evaluated (rule_budget.py)."""
_STRINGS = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|//[^\n]*")
_CONTAINER_MACRO = re.compile(r"\bpod\.containers\s*\.\s*\w+\(\s*([A-Za-z_]\w*)\s*,")
_EXPANDING_CALL = re.compile(r"\.\s*(?:replace|join|format|map|optMap|optFlatMap)\s*\(")
_CONTAINER_FIELDS = frozenset(fact.name for fact in CONTAINER_FACTS)


class CompileDiagnostic(msgspec.Struct, frozen=True):
    """Something that is wrong with an expression, and where in it."""

    message: str
    location: Location = Location(1, 1)


class CompileError(Exception):
    """An expression is wrong; all that was found."""

    def __init__(self, errors: Iterable[CompileDiagnostic]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(flaw.message for flaw in self.errors))


def container_variables(text: str) -> frozenset[str]:
    """What an expression calls a container: `c` in `pod.containers.exists(c, …)`."""
    return frozenset(found[1] for found in _CONTAINER_MACRO.finditer(blank_strings(text)))


def blank_strings(text: str) -> str:
    """Blank where texts and remarks are."""
    return _STRINGS.sub(lambda found: " " * len(found[0]), text)


def unknown_fields(bare: str) -> Iterable[CompileDiagnostic]:
    """Parts of containers that there are not."""
    for each in {found[1] for found in _CONTAINER_MACRO.finditer(bare)}:
        for found in re.finditer(rf"(?<![\w.])({each})\s*\.\s*(\w+)\b(?!\s*\()", bare):
            if found[2] not in _CONTAINER_FIELDS:
                known = ", ".join(sorted(_CONTAINER_FIELDS))
                yield CompileDiagnostic(
                    f"containers have no {found[2]}, but {known}", _location(bare, found.start(2))
                )


def excess_calls(bare: str) -> Iterable[CompileDiagnostic]:
    """The first call beyond `MAX_EXPANSIONS` that may make more of what it gets."""
    calls = list(_EXPANDING_CALL.finditer(bare))
    for found in calls[MAX_EXPANSIONS : MAX_EXPANSIONS + 1]:
        problem = (
            f"map(), join(), replace() and format() are called more than {MAX_EXPANSIONS} times"
        )
        yield CompileDiagnostic(problem, _location(bare, found.start()))


def _location(bare: str, at: int) -> Location:
    before = bare[:at]
    return Location(before.count("\n") + 1, at - before.rfind("\n"))
