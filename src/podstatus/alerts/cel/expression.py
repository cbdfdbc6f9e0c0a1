"""Compile and evaluate expressions in CEL, with hints for expressions that are wrong.

Facts are variables with whole names (`pod.phase`), so that a wrong name or type is found when an
expression is compiled. The elements of `pod.containers` are maps, in which CEL finds a wrong name
only on evaluation: those names are checked in the text.

CEL is not written in Python and reports a failure in several ways: as an error value, as a
RuntimeError if it loops for too long, as a TypeError if it has no value for Python. Each fails that
expression alone.

An environment and its compiled expressions can be used from any thread, one at a time.
"""

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

from podstatus.alerts.evaluator.ports import RuleFailed
from podstatus.alerts.model import Location, Scope
from podstatus.alerts.rules.facts import FACTS, Fact, Facts
from podstatus.alerts.rules.static_checks import (
    CompileDiagnostic,
    CompileError,
    blank_strings,
    excess_calls,
    unknown_fields,
)

_MISSING_KEY = re.compile(r'key not found in map : "([^"\\]*)"')
_INDEX_ERROR = re.compile(r"index error: index=(\d+) size=(\d+)")
_MAPS = "|".join(
    re.escape(fact.name)
    for facts in FACTS.values()
    for fact in facts
    if fact.kind == "map(string, string)"
)
_TOKENS = {"=": "==", "&": "&&", "|": "||"}
_TOKEN = re.compile(r"syntax error: token recognition error at: '([=&|])[^=&|]?'$")
_WORDS = {"and": "&&", "or": "||"}
_WORD = re.compile(r"syntax error: mismatched input '(and|or)'")


def explain_failure(text: str, like: str, problem: str) -> str:
    """What it says if it fails of one like this: of a key that may be missing, which, and where."""
    if (beyond := _INDEX_ERROR.match(problem)) is not None:
        return (
            f"it fails of {like}: a list of {beyond[2]} has no [{beyond[1]}]; "
            f"ask first: size(…) > {beyond[1]} && …, or use exists()"
        )
    missing = _MISSING_KEY.match(problem)
    if missing is None:
        return f"it fails of {like}: {problem}"
    key = missing[1]
    found = re.search(
        rf"\b({_MAPS})\s*(?:\.\s*{re.escape(key)}\b|\[\s*([\"']){re.escape(key)}\2\s*\])", text
    )
    if found is None:
        return f"it fails of {like}: {problem}; ask first whether it is there"
    scope, fact = found[1].partition(".")[0], found[1]
    return f'it fails of a {scope} without "{key}" in {fact}; ask first: "{key}" in {fact} && …'


def explain_type(kind: str) -> str:
    """What is wrong with a condition of another type than bool."""
    cure = "; nobody knows before it is asked: write … == true" if kind == "dyn" else ""
    return f"it must be true or false, and is of type {kind}{cure}"


def explain_scope(name: str) -> str:
    """In rules of which scope there is a fact that is not known here; empty: in none."""
    scopes = [
        scope
        for scope, facts in FACTS.items()
        if any(name == fact.name or name.startswith(f"{fact.name}.") for fact in facts)
    ]
    return f" here, but in rules with scope {scopes[0]}" if scopes else ""


def explain_syntax(message: str) -> str:
    """What CEL writes for a sign or word of other languages."""
    if (token := _TOKEN.match(message)) is not None:
        return f"syntax error: write {_TOKENS[token[1]]}, not {token[1]}"
    if (word := _WORD.match(message)) is not None:
        return f"syntax error: write {_WORDS[word[1]]}, not {word[1]}"
    return message


MAX_EXPRESSION_LENGTH = 10_000
"""Characters of an expression. CEL itself bounds how deep it is nested, and how long it loops."""
_MAX_PROBLEM_LENGTH = 300
_TYPES = {
    "string": cel.Type.STRING,
    "bool": cel.Type.BOOL,
    "int": cel.Type.INT,
    "double": cel.Type.DOUBLE,
    "map(string, string)": cel.Type.Map(cel.Type.STRING, cel.Type.STRING),
    "list(map(string, dyn))": cel.Type.List(cel.Type.Map(cel.Type.STRING, cel.Type.DYN)),
}
Activation: TypeAlias = Any
"""Facts as expressions take them."""
_ERROR = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")
_UNDECLARED = re.compile(r"undeclared reference to '([^']*)'")
_EXPECTING = " expecting {"


class Expression:
    """One that was compiled."""

    def __init__(self, compiled: cel.Expression) -> None:
        self._compiled = compiled
        self.is_bool = compiled.return_type() == cel.Type.BOOL
        self.type_name = compiled.return_type().name().lower()

    def holds(self, facts: Activation) -> bool | RuleFailed:
        """Whether it is true, of one that is a bool."""
        try:
            held: object = self._compiled.eval(facts).value()
        except Exception as error:  # noqa: BLE001 - of code that is not Python
            return RuleFailed(_clean_message(error))
        # An error is a text: of a bool nothing else can come.
        return held if isinstance(held, bool) else RuleFailed(_clean_message(held))

    def value(self, facts: Activation) -> Any:
        """What it amounts to, as a plain value, or Failed."""
        try:
            value = self._compiled.eval(facts)
            if value.type() == cel.Type.ERROR:
                return RuleFailed(_clean_message(value.value()))
            return value.plain_value()
        except Exception as error:  # noqa: BLE001 - of code that is not Python
            return RuleFailed(_clean_message(error))


class Environment:
    """What expressions of a scope may name."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._env = cel.NewEnv(
            variables={fact.name: _TYPES[fact.kind] for fact in facts},
            extensions=[ext_optional.ExtOptional(), ext_strings.ExtStrings()],
        )

    @classmethod
    def for_scope(cls, scope: Scope) -> "Environment":
        """With all facts of a scope."""
        return cls(FACTS[scope])

    def compile(self, text: str) -> Expression:
        """An expression. Raises ExpressionError."""
        if len(text) > MAX_EXPRESSION_LENGTH:
            raise CompileError(
                [CompileDiagnostic(f"it is longer than {MAX_EXPRESSION_LENGTH} characters")]
            )
        bare = blank_strings(text)
        # First of all: to compile optMap() CEL writes out twice what it is called on.
        if flaws := list(excess_calls(bare)):
            raise CompileError(flaws)
        try:
            compiled = self._env.compile(text)
        except RuntimeError as error:
            raise CompileError(_compile_errors(text, str(error))) from None
        if flaws := list(unknown_fields(bare)):
            raise CompileError(flaws)
        return Expression(compiled)

    def activation(self, facts: Facts) -> Activation:
        """What expressions are asked about: made once for all of them."""
        return self._env.Activation(facts)


def _compile_errors(text: str, told: str) -> list[CompileDiagnostic]:
    found = [
        _compile_error(text, int(line), int(column), message)
        for line, column, message in _ERROR.findall(told)
    ]
    if not found:
        found = [CompileDiagnostic(_clean_message(told))]
    # After a mistake in the syntax the parser stumbles on.
    return found[:1] if found[0].message.startswith("syntax") else found


def _compile_error(text: str, line: int, column: int, message: str) -> CompileDiagnostic:
    place = Location(max(1, line), max(1, column))
    message, _, _ = message.removesuffix(" [INVALID_ARGUMENT]").partition(_EXPECTING)
    message = message.removesuffix(" (in container '')")
    message = message[:1].lower() + message[1:]
    if (undeclared := _UNDECLARED.match(message)) is not None:
        place = _name_location(text, place, undeclared[1])
        message = f"nothing is called {undeclared[1]}{explain_scope(undeclared[1])}"
    elif "no matching overload" in message and "double" in message and "int" in message:
        message += "; a whole number of type double is written 3.0"
    return CompileDiagnostic(explain_syntax(message), place)


def _name_location(text: str, place: Location, name: str) -> Location:
    """Where a name begins: CEL says where its last dot or its parenthesis is."""
    lines = text.split("\n")
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    for before in (name.rfind("."), len(name)):
        begins = place.column - 1 - before
        if before >= 0 and begins >= 0 and line.startswith(name, begins):
            return Location(place.line, begins + 1)
    return place


def _clean_message(told: object) -> str:
    """What CEL says, without its codes, in one line."""
    text = " ".join(str(told).split())
    text = re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", text)
    return text[:1].lower() + text[1:_MAX_PROBLEM_LENGTH]
