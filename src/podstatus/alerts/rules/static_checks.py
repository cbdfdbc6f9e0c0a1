"""Checks on the text of an expression, without CEL."""

import re
from collections.abc import Iterable

import msgspec

from podstatus.alerts.model import Location
from podstatus.alerts.rules.fact_variables import CONTAINER_FACTS

MAX_EXPANSIONS = 5
"""Calls in an expression that may enlarge their input. CEL does not limit the result: eight
times `replace("x", "xxxxxxxxxx")` make 100 MB of one letter. This check reports a location in the
file; memory itself is limited in the evaluator process (evaluator/budget.py)."""
_STRINGS = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|//[^\n]*")
_CONTAINER_MACRO = re.compile(r"\bpod\.containers\s*\.\s*\w+\(\s*([A-Za-z_]\w*)\s*,")
_EXPANDING_CALL = re.compile(r"\.\s*(?:replace|join|format|map|optMap|optFlatMap)\s*\(")
_CONTAINER_FIELDS = frozenset(fact.name for fact in CONTAINER_FACTS)


class CompileDiagnostic(msgspec.Struct, frozen=True):
    """An error in an expression, with its location."""

    message: str
    location: Location = Location(1, 1)


class CompileError(Exception):
    """The expression is invalid; has all its errors."""

    def __init__(self, errors: Iterable[CompileDiagnostic]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(error.message for error in self.errors))


def container_variables(text: str) -> frozenset[str]:
    """Return the variables of macros over containers: `c` in `pod.containers.exists(c, …)`."""
    return frozenset(match[1] for match in _CONTAINER_MACRO.finditer(blank_strings(text)))


def blank_strings(text: str) -> str:
    """Replace strings and comments by spaces."""
    return _STRINGS.sub(lambda match: " " * len(match[0]), text)


def unknown_fields(bare: str) -> Iterable[CompileDiagnostic]:
    """Yield a diagnostic for each unknown field of a container."""
    for each in {match[1] for match in _CONTAINER_MACRO.finditer(bare)}:
        for match in re.finditer(rf"(?<![\w.])({each})\s*\.\s*(\w+)\b(?!\s*\()", bare):
            if match[2] not in _CONTAINER_FIELDS:
                fields = ", ".join(sorted(_CONTAINER_FIELDS))
                yield CompileDiagnostic(
                    f"containers have no {match[2]}; use one of {fields}",
                    _location(bare, match.start(2)),
                )


def excess_calls(bare: str) -> Iterable[CompileDiagnostic]:
    """Yield a diagnostic for the first call beyond `MAX_EXPANSIONS`."""
    calls = list(_EXPANDING_CALL.finditer(bare))
    for match in calls[MAX_EXPANSIONS : MAX_EXPANSIONS + 1]:
        problem = f"more than {MAX_EXPANSIONS} calls of map(), join(), replace() and format()"
        yield CompileDiagnostic(problem, _location(bare, match.start()))


def _location(bare: str, at: int) -> Location:
    before = bare[:at]
    return Location(before.count("\n") + 1, at - before.rfind("\n"))
