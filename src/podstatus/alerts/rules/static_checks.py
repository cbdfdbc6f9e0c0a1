"""Checks on the text of an expression, without CEL.

A comparison of a fact with a value that it never has, `pod.phase == "running"`, is valid and never
holds. Only simple comparisons are checked: a fact on one side of `==` or `!=`, a string literal on
the other.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

import msgspec

from podstatus.alerts.model import Location
from podstatus.alerts.rules.fact_variables import CONTAINER_FACTS
from podstatus.kube.objects.pod import POD_PHASES
from podstatus.observe.summary.health import HealthState

MAX_EXPANSIONS = 5
"""Calls in an expression that may enlarge their input. CEL does not limit the result: eight
times `replace("x", "xxxxxxxxxx")` make 100 MB of one letter. This check reports a location in the
file; memory itself is limited in the evaluator process (evaluator/budget.py)."""
_STRINGS = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|//[^\n]*")
_CONTAINER_MACRO = re.compile(r"\bpod\.containers\s*\.\s*\w+\(\s*([A-Za-z_]\w*)\s*,")
_EXPANDING_CALL = re.compile(r"\.\s*(?:replace|join|format|map|optMap|optFlatMap)\s*\(")
_CONTAINER_FIELDS = frozenset(fact.name for fact in CONTAINER_FACTS)

_POD_LITERALS: Mapping[str, tuple[str, ...]] = {
    "pod.phase": (*POD_PHASES, "Unknown"),
    "pod.qos": ("Guaranteed", "Burstable", "BestEffort"),
    "pod.health": tuple(word.value for word in HealthState),
}
_CONTAINER_LITERALS: Mapping[str, tuple[str, ...]] = {
    "kind": ("container", "init", "sidecar", "ephemeral"),
    "state": ("running", "waiting", "terminated"),
}
_TOKEN = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"|//[^\n]*|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)|(?P<compares>[=!]=)|(?P<other>\S)"
)
_CONTINUATIONS = frozenset("+.[")
"""Tokens around a string literal that make it a part of a larger operand."""


class CompileDiagnostic(msgspec.Struct, frozen=True):
    """An error in an expression, with its location."""

    message: str
    location: Location = Location(1, 1)


class CompileError(Exception):
    """The expression is invalid; has all its errors."""

    def __init__(self, errors: Iterable[CompileDiagnostic]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(error.message for error in self.errors))


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


def unknown_literals(expression: str) -> Iterator[CompileDiagnostic]:
    """Yield a diagnostic for each such comparison in a valid expression."""
    allowed = _allowed_literals(expression)
    tokens = [match for match in _TOKEN.finditer(expression) if match.lastgroup]
    for number, token in enumerate(tokens):
        if token.lastgroup != "compares" or number == 0 or number + 1 == len(tokens):
            continue
        left, right = tokens[number - 1], tokens[number + 1]
        neighbours = [
            it[0] for it in (*tokens[: number - 1][-1:], *tokens[number + 2 : number + 3])
        ]
        if {left.lastgroup, right.lastgroup} == {"name", "text"} and _CONTINUATIONS.isdisjoint(
            neighbours
        ):
            name, text = (left, right) if left.lastgroup == "name" else (right, left)
            yield from _check_literal(allowed.get(name[0], ()), name[0], text)


def _allowed_literals(expression: str) -> dict[str, tuple[str, ...]]:
    """Return the allowed values of facts, by their names in this expression."""
    variables = {match[1] for match in _CONTAINER_MACRO.finditer(blank_strings(expression))}
    containers = {
        f"{it}.{name}": words for it in variables for name, words in _CONTAINER_LITERALS.items()
    }
    return {**_POD_LITERALS, **containers}


def _check_literal(
    allowed: Iterable[str], name: str, text: re.Match[str]
) -> Iterator[CompileDiagnostic]:
    word, allowed = text[0][1:-1], tuple(allowed)
    # Empty means unknown, so it is a valid value.
    if not allowed or not word or word in allowed or "\\" in word:
        return
    near = get_close_matches(word, allowed, 1)
    hint = f"; did you mean {near[0]}?" if near else f"; it is one of {', '.join(allowed)}"
    yield CompileDiagnostic(
        f"{name} is never {text[0]}{hint}", _location(text.string, text.start())
    )


def _location(text: str, at: int) -> Location:
    before = text[:at]
    return Location(before.count("\n") + 1, at - before.rfind("\n"))
