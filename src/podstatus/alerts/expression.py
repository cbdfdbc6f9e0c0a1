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

import msgspec
from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

from podstatus.alerts.expression_cures import scope_told, syntax_told
from podstatus.alerts.fact_table import CONTAINER_FACTS, FACTS, Fact
from podstatus.alerts.facts import Facts
from podstatus.alerts.rule import Place, Scope

LONGEST = 10_000
"""Characters of an expression. CEL itself bounds how deep it is nested, and how long it loops."""
MOST_GROWING = 5
"""Calls in an expression that may make more of what they get. CEL does not bound how much: eight
times `replace("x", "xxxxxxxxxx")` make 100 MB of one letter. This is for mistakes: who wants to
use up memory with a rule still can, as with the settings of an agent."""
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
_TEXTS = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|//[^\n]*")
_EACH = re.compile(r"\bpod\.containers\s*\.\s*\w+\(\s*([A-Za-z_]\w*)\s*,")
_GROWING = re.compile(r"\.\s*(?:replace|join|format|map|optMap|optFlatMap)\s*\(")
_OF_CONTAINERS = frozenset(fact.name for fact in CONTAINER_FACTS)
_EXPECTING = " expecting {"


class Flaw(msgspec.Struct, frozen=True):
    """Something that is wrong with an expression, and where in it."""

    message: str
    place: Place = Place(1, 1)


class ExpressionError(Exception):
    """An expression is wrong; all that was found."""

    def __init__(self, flaws: Iterable[Flaw]) -> None:
        self.flaws = tuple(flaws)
        super().__init__("; ".join(flaw.message for flaw in self.flaws))


class Failed(msgspec.Struct, frozen=True):
    """An expression has no value for these facts."""

    problem: str


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
        bare = _without_texts(text)
        # First of all: to compile optMap() CEL writes out twice what it is called on.
        if flaws := list(_too_much(bare)):
            raise ExpressionError(flaws)
        try:
            compiled = self._env.compile(text)
        except RuntimeError as error:
            raise ExpressionError(_flaws(text, str(error))) from None
        if flaws := list(_wrong_names(bare)):
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


def names_of_containers(text: str) -> frozenset[str]:
    """What an expression calls a container: `c` in `pod.containers.exists(c, …)`."""
    return frozenset(found[1] for found in _EACH.finditer(_without_texts(text)))


def _without_texts(text: str) -> str:
    """Blank where texts and remarks are."""
    return _TEXTS.sub(lambda found: " " * len(found[0]), text)


def _wrong_names(bare: str) -> Iterable[Flaw]:
    """Parts of containers that there are not."""
    for each in {found[1] for found in _EACH.finditer(bare)}:
        for found in re.finditer(rf"(?<![\w.])({each})\s*\.\s*(\w+)\b(?!\s*\()", bare):
            if found[2] not in _OF_CONTAINERS:
                known = ", ".join(sorted(_OF_CONTAINERS))
                yield Flaw(
                    f"containers have no {found[2]}, but {known}", _place(bare, found.start(2))
                )


def _too_much(bare: str) -> Iterable[Flaw]:
    calls = list(_GROWING.finditer(bare))
    for found in calls[MOST_GROWING : MOST_GROWING + 1]:
        problem = f"map(), join(), replace() and format() are called more than {MOST_GROWING} times"
        yield Flaw(problem, _place(bare, found.start()))


def _place(bare: str, at: int) -> Place:
    before = bare[:at]
    return Place(before.count("\n") + 1, at - before.rfind("\n"))


def _problem(told: object) -> str:
    """What CEL says, without its codes, in one line."""
    text = " ".join(str(told).split())
    text = re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", text)
    return text[:1].lower() + text[1:_LONGEST_PROBLEM]
