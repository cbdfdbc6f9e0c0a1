"""Words that facts are compared with and never are: `pod.phase == "running"`.

Such a rule is right, and never holds. Only what is plain is looked at: a fact on one side of
`==` or `!=`, a text on the other.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from podstatus.alerts.model import Location
from podstatus.alerts.rules.static_checks import CompileDiagnostic, container_variables
from podstatus.observe.summary.health import HealthState

_POD_LITERALS: Mapping[str, tuple[str, ...]] = {
    "pod.phase": ("Pending", "Running", "Succeeded", "Failed", "Unknown"),
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
"""After or before a text: it is not all that is compared."""


def unknown_literals(expression: str) -> Iterator[CompileDiagnostic]:
    """Those of an expression that was compiled."""
    known = _allowed_literals(expression)
    tokens = [found for found in _TOKEN.finditer(expression) if found.lastgroup]
    for number, token in enumerate(tokens):
        if token.lastgroup != "compares" or number == 0 or number + 1 == len(tokens):
            continue
        left, right = tokens[number - 1], tokens[number + 1]
        ends = [it[0] for it in (*tokens[: number - 1][-1:], *tokens[number + 2 : number + 3])]
        if {left.lastgroup, right.lastgroup} == {"name", "text"} and _CONTINUATIONS.isdisjoint(
            ends
        ):
            name, text = (left, right) if left.lastgroup == "name" else (right, left)
            yield from _check_literal(known.get(name[0], ()), name[0], text)


def _allowed_literals(expression: str) -> dict[str, tuple[str, ...]]:
    """By the names that facts have in this expression, what they may be."""
    each = container_variables(expression)
    of_each = {f"{it}.{name}": words for it in each for name, words in _CONTAINER_LITERALS.items()}
    return {**_POD_LITERALS, **of_each}


def _check_literal(
    known: Iterable[str], name: str, text: re.Match[str]
) -> Iterator[CompileDiagnostic]:
    word, known = text[0][1:-1], tuple(known)
    # What is not known is empty.
    if not known or not word or word in known or "\\" in word:
        return
    near = get_close_matches(word, known, 1)
    meant = f"; did you mean {near[0]}?" if near else f", but {', '.join(known)}"
    before = text.string[: text.start()]
    place = Location(before.count("\n") + 1, text.start() - before.rfind("\n"))
    yield CompileDiagnostic(f"{name} is never {text[0]}{meant}", place)
