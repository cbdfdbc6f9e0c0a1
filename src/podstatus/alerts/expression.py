"""Expressions in CEL, compiled and asked.

The facts are variables with whole names (`pod.phase`), so that a wrong name or type is found
when an expression is compiled. The elements of `pod.containers` are maps, in which CEL would
find a wrong name only when it gets there: those are looked for in the text.

CEL is not written in Python, and says in many ways that it cannot: as a value that is an error,
as a RuntimeError if it loops for too long, as a TypeError if it has no value for Python. Each is
what has come of that expression, and no more.

An environment and what it compiled may be used from any thread, one at a time.
"""

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

from podstatus.alerts.evaluation import Failed
from podstatus.alerts.expression_cures import scope_told, syntax_told
from podstatus.alerts.expression_text import (
    ExpressionError,
    Flaw,
    too_much,
    without_texts,
    wrong_names,
)
from podstatus.alerts.fact_table import FACTS, Fact
from podstatus.alerts.facts import Facts
from podstatus.alerts.rule import Place, Scope

LONGEST = 10_000
"""Characters of an expression. CEL itself bounds how deep it is nested, and how long it loops."""
_LONGEST_PROBLEM = 300
_TYPES = {
    "string": cel.Type.STRING,
    "bool": cel.Type.BOOL,
    "int": cel.Type.INT,
    "double": cel.Type.DOUBLE,
    "map(string, string)": cel.Type.Map(cel.Type.STRING, cel.Type.STRING),
    "list(map(string, dyn))": cel.Type.List(cel.Type.Map(cel.Type.STRING, cel.Type.DYN)),
}
Asked: TypeAlias = Any
"""Facts as expressions take them."""
_ERROR = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")
_UNDECLARED = re.compile(r"undeclared reference to '([^']*)'")
_EXPECTING = " expecting {"


class Expression:
    """One that was compiled."""

    def __init__(self, compiled: cel.Expression) -> None:
        self._compiled = compiled
        self.is_bool = compiled.return_type() == cel.Type.BOOL
        self.kind = compiled.return_type().name().lower()

    def holds(self, facts: Asked) -> bool | Failed:
        """Whether it is true, of one that is a bool."""
        try:
            held: object = self._compiled.eval(facts).value()
        except Exception as error:  # noqa: BLE001 - of code that is not Python
            return Failed(_problem(error))
        # An error is a text: of a bool nothing else can come.
        return held if isinstance(held, bool) else Failed(_problem(held))

    def value(self, facts: Asked) -> Any:
        """What it amounts to, as a plain value, or Failed."""
        try:
            value = self._compiled.eval(facts)
            if value.type() == cel.Type.ERROR:
                return Failed(_problem(value.value()))
            return value.plain_value()
        except Exception as error:  # noqa: BLE001 - of code that is not Python
            return Failed(_problem(error))


class Environment:
    """What expressions of a scope may name."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._env = cel.NewEnv(
            variables={fact.name: _TYPES[fact.kind] for fact in facts},
            extensions=[ext_optional.ExtOptional(), ext_strings.ExtStrings()],
        )

    @classmethod
    def of(cls, scope: Scope) -> "Environment":
        """With all facts of a scope."""
        return cls(FACTS[scope])

    def compile(self, text: str) -> Expression:
        """An expression. Raises ExpressionError."""
        if len(text) > LONGEST:
            raise ExpressionError([Flaw(f"it is longer than {LONGEST} characters")])
        bare = without_texts(text)
        # First of all: to compile optMap() CEL writes out twice what it is called on.
        if flaws := list(too_much(bare)):
            raise ExpressionError(flaws)
        try:
            compiled = self._env.compile(text)
        except RuntimeError as error:
            raise ExpressionError(_flaws(text, str(error))) from None
        if flaws := list(wrong_names(bare)):
            raise ExpressionError(flaws)
        return Expression(compiled)

    def facts(self, facts: Facts) -> Asked:
        """What expressions are asked about: made once for all of them."""
        return self._env.Activation(facts)


def _flaws(text: str, told: str) -> list[Flaw]:
    found = [
        _flaw(text, int(line), int(column), message)
        for line, column, message in _ERROR.findall(told)
    ]
    if not found:
        found = [Flaw(_problem(told))]
    # After a mistake in the syntax the parser stumbles on.
    return found[:1] if found[0].message.startswith("syntax") else found


def _flaw(text: str, line: int, column: int, message: str) -> Flaw:
    place = Place(max(1, line), max(1, column))
    message, _, _ = message.removesuffix(" [INVALID_ARGUMENT]").partition(_EXPECTING)
    message = message.removesuffix(" (in container '')")
    message = message[:1].lower() + message[1:]
    if (undeclared := _UNDECLARED.match(message)) is not None:
        place = _beginning(text, place, undeclared[1])
        message = f"nothing is called {undeclared[1]}{scope_told(undeclared[1])}"
    elif "no matching overload" in message and "double" in message and "int" in message:
        message += "; a whole number of type double is written 3.0"
    return Flaw(syntax_told(message), place)


def _beginning(text: str, place: Place, name: str) -> Place:
    """Where a name begins: CEL says where its last dot or its parenthesis is."""
    lines = text.split("\n")
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    for before in (name.rfind("."), len(name)):
        begins = place.column - 1 - before
        if before >= 0 and begins >= 0 and line.startswith(name, begins):
            return Place(place.line, begins + 1)
    return place


def _problem(told: object) -> str:
    """What CEL says, without its codes, in one line."""
    text = " ".join(str(told).split())
    text = re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", text)
    return text[:1].lower() + text[1:_LONGEST_PROBLEM]
