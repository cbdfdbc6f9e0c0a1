"""Find comparisons of a fact with a value that it never has: `pod.phase == "running"`.

Such a rule is valid and never holds. Only simple comparisons are checked: a fact on one side of
`==` or `!=`, a string literal on the other.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from podstatus.alerts.model import Location
from podstatus.alerts.rules.static_checks import CompileDiagnostic, container_variables
from podstatus.kube.objects.pod import POD_PHASES
from podstatus.observe.summary.health import HealthState

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
    variables = container_variables(expression)
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
    before = text.string[: text.start()]
    place = Location(before.count("\n") + 1, text.start() - before.rfind("\n"))
    yield CompileDiagnostic(f"{name} is never {text[0]}{hint}", place)
