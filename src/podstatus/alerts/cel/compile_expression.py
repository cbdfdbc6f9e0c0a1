"""Compile and evaluate CEL expressions, with hints for invalid ones.

Facts are variables with qualified names (`pod.phase`), so a wrong name or type is a compile error.
The elements of `pod.containers` are maps, in which CEL finds a wrong name only on evaluation: those
names are checked in the text.

CEL is a C++ library and reports a failure in several ways: as an error value, as a RuntimeError if
it iterates for too long, as a TypeError if a value has no Python equivalent. Each fails that
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
from podstatus.alerts.rules.fact_variables import FACTS, Fact, Facts
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
    """Explain a failure for a subject like this; for a missing key, name the key and its map."""
    if (beyond := _INDEX_ERROR.match(problem)) is not None:
        return (
            f"it fails for {like}: a list of {beyond[2]} has no [{beyond[1]}]; "
            f"check first: size(…) > {beyond[1]} && …, or use exists()"
        )
    missing = _MISSING_KEY.match(problem)
    if missing is None:
        return f"it fails for {like}: {problem}"
    key = missing[1]
    access = re.search(
        rf"\b({_MAPS})\s*(?:\.\s*{re.escape(key)}\b|\[\s*([\"']){re.escape(key)}\2\s*\])", text
    )
    if access is None:
        return f"it fails for {like}: {problem}; check first whether it exists"
    scope, fact = access[1].partition(".")[0], access[1]
    return f'it fails for a {scope} without "{key}" in {fact}; check first: "{key}" in {fact} && …'


def explain_type(kind: str) -> str:
    """Explain that a condition has another type than bool."""
    hint = "; its type is known only on evaluation: write … == true" if kind == "dyn" else ""
    return f"it must be true or false, but has type {kind}{hint}"


def explain_scope(name: str) -> str:
    """Return a hint naming the scope that has this fact; empty if no scope has it."""
    scopes = [
        scope
        for scope, facts in FACTS.items()
        if any(name == fact.name or name.startswith(f"{fact.name}.") for fact in facts)
    ]
    return f" here; rules with scope {scopes[0]} have it" if scopes else ""


def explain_syntax(message: str) -> str:
    """Explain a syntax error at an operator or keyword of another language."""
    if (token := _TOKEN.match(message)) is not None:
        return f"syntax error: write {_TOKENS[token[1]]}, not {token[1]}"
    if (word := _WORD.match(message)) is not None:
        return f"syntax error: write {_WORDS[word[1]]}, not {word[1]}"
    return message


MAX_EXPRESSION_LENGTH = 10_000
"""Characters in an expression. CEL itself limits nesting depth and iterations."""
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
"""Facts in the form that CEL evaluates."""
_ERROR = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")
_UNDECLARED = re.compile(r"undeclared reference to '([^']*)'")
_EXPECTING = " expecting {"


class Expression:
    """A compiled CEL expression, ready to evaluate."""

    def __init__(self, compiled: cel.Expression) -> None:
        self._compiled = compiled
        self.is_bool = compiled.return_type() == cel.Type.BOOL
        self.type_name = compiled.return_type().name().lower()

    def holds(self, facts: Activation) -> bool | RuleFailed:
        """Evaluate an expression of type bool."""
        try:
            result: object = self._compiled.eval(facts).value()
        except Exception as error:  # noqa: BLE001 - raised by C++ code
            return RuleFailed(_clean_message(error))
        # An error value is a string; an expression of type bool has no other.
        return result if isinstance(result, bool) else RuleFailed(_clean_message(result))

    def value(self, facts: Activation) -> Any:
        """Return the result as a plain Python value, or RuleFailed."""
        try:
            value = self._compiled.eval(facts)
            if value.type() == cel.Type.ERROR:
                return RuleFailed(_clean_message(value.value()))
            return value.plain_value()
        except Exception as error:  # noqa: BLE001 - raised by C++ code
            return RuleFailed(_clean_message(error))


class Environment:
    """The variables and functions that expressions of a scope can use."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._env = cel.NewEnv(
            variables={fact.name: _TYPES[fact.kind] for fact in facts},
            extensions=[ext_optional.ExtOptional(), ext_strings.ExtStrings()],
        )

    @classmethod
    def for_scope(cls, scope: Scope) -> "Environment":
        return cls(FACTS[scope])

    def compile(self, text: str) -> Expression:
        """Compile an expression. Raises CompileError."""
        if len(text) > MAX_EXPRESSION_LENGTH:
            raise CompileError(
                [CompileDiagnostic(f"it is longer than {MAX_EXPRESSION_LENGTH} characters")]
            )
        bare = blank_strings(text)
        # Before compiling: CEL duplicates the operand of optMap() when it expands the macro.
        if errors := list(excess_calls(bare)):
            raise CompileError(errors)
        try:
            compiled = self._env.compile(text)
        except RuntimeError as error:
            raise CompileError(_compile_errors(text, str(error))) from None
        if errors := list(unknown_fields(bare)):
            raise CompileError(errors)
        return Expression(compiled)

    def activation(self, facts: Facts) -> Activation:
        """Return the facts as an activation, to be shared by all expressions."""
        return self._env.Activation(facts)


def _compile_errors(text: str, output: str) -> list[CompileDiagnostic]:
    errors = [
        _compile_error(text, int(line), int(column), message)
        for line, column, message in _ERROR.findall(output)
    ]
    if not errors:
        errors = [CompileDiagnostic(_clean_message(output))]
    # After a syntax error, further errors are consequences of the first.
    return errors[:1] if errors[0].message.startswith("syntax") else errors


def _compile_error(text: str, line: int, column: int, message: str) -> CompileDiagnostic:
    place = Location(max(1, line), max(1, column))
    message, _, _ = message.removesuffix(" [INVALID_ARGUMENT]").partition(_EXPECTING)
    message = message.removesuffix(" (in container '')")
    message = message[:1].lower() + message[1:]
    if (undeclared := _UNDECLARED.match(message)) is not None:
        place = _name_location(text, place, undeclared[1])
        message = f"there is no {undeclared[1]}{explain_scope(undeclared[1])}"
    elif "no matching overload" in message and "double" in message and "int" in message:
        message += "; write a whole number of type double as 3.0"
    return CompileDiagnostic(explain_syntax(message), place)


def _name_location(text: str, place: Location, name: str) -> Location:
    """Return where a name begins: CEL reports its last dot or its parenthesis."""
    lines = text.split("\n")
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    for before in (name.rfind("."), len(name)):
        begins = place.column - 1 - before
        if before >= 0 and begins >= 0 and line.startswith(name, begins):
            return Location(place.line, begins + 1)
    return place


def _clean_message(message: object) -> str:
    """Return a CEL message on one line, without status codes."""
    text = " ".join(str(message).split())
    text = re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", text)
    return text[:1].lower() + text[1:_MAX_PROBLEM_LENGTH]
