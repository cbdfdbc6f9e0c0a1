"""Texts with expressions between braces: `{{ pod.name }} restarted {{ pod.restarts }} times`."""

import json
import re
from typing import Any

import msgspec

from podstatus.alerts.cel.expression import Activation, Environment, Expression
from podstatus.alerts.evaluator.ports import RuleFailed
from podstatus.alerts.model import Location
from podstatus.alerts.rules.static_checks import CompileDiagnostic, CompileError

_BRACES = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_MAX_LENGTH = 2_000
"""Characters of a text that was filled in."""


class Template(msgspec.Struct, frozen=True):
    """A text, and the expressions in it."""

    parts: tuple[str | Expression, ...]

    def render(self, facts: Activation) -> str:
        """The text with what is known. An expression that fails is told in its place."""
        return "".join(
            part if isinstance(part, str) else _format_value(part.value(facts))
            for part in self.parts
        )[:_MAX_LENGTH]


def compile_template(environment: Environment, text: str) -> Template:
    """A template. Raises ExpressionError, with places in the text."""
    parts: list[str | Expression] = []
    flaws: list[CompileDiagnostic] = []
    after = 0
    for found in _BRACES.finditer(text):
        parts.append(text[after : found.start()])
        after = found.end()
        try:
            parts.append(_compile_part(environment, found[1]))
        except CompileError as error:
            flaws += [
                CompileDiagnostic(f.message, _shift_error(text, found.start(1), f.location))
                for f in error.errors
            ]
    rest = text[after:]
    parts.append(rest)
    for braces, cure in (("{{", "}}"), ("}}", "{{")):
        if (at := rest.find(braces)) >= 0:
            flaws.append(
                CompileDiagnostic(
                    f"{braces} without {cure}", _shift_error(text, after + at, Location(1, 1))
                )
            )
    if flaws:
        raise CompileError(flaws)
    return Template(tuple(part for part in parts if part != ""))


def _compile_part(environment: Environment, text: str) -> Expression:
    compiled = environment.compile(text)
    if compiled.type_name.startswith("optional"):
        raise CompileError([CompileDiagnostic('it may be nothing; say what then: .orValue("")')])
    return compiled


def _shift_error(text: str, offset: int, inside: Location) -> Location:
    """A place in an expression that begins at this offset, as a place in the text."""
    before = text[:offset]
    line = before.count("\n") + inside.line
    column = inside.column + (offset - before.rfind("\n") - 1 if inside.line == 1 else 0)
    return Location(line, column)


def _format_value(value: Any) -> str:
    match value:
        case RuleFailed():
            return f"<{value.problem}>"
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:g}"
        case int():
            return str(value)
        case _:
            return json.dumps(value, default=str, ensure_ascii=False)
