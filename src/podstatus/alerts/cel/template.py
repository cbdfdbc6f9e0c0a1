"""Text with CEL expressions in braces: `{{ pod.name }} restarted {{ pod.restarts }} times`."""

import json
import re
from typing import Any

import msgspec

from podstatus.alerts.cel.compile_expression import Activation, Environment, Expression
from podstatus.alerts.evaluator.ports import RuleFailed
from podstatus.alerts.model import Location
from podstatus.alerts.rules.static_checks import CompileDiagnostic, CompileError

_BRACES = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_MAX_LENGTH = 2_000
"""Characters in a rendered text."""


class Template(msgspec.Struct, frozen=True):
    """A text with embedded expressions."""

    parts: tuple[str | Expression, ...]

    def render(self, facts: Activation) -> str:
        """Render the text. An expression that fails is rendered as its error."""
        return "".join(
            part if isinstance(part, str) else _format_value(part.value(facts))
            for part in self.parts
        )[:_MAX_LENGTH]


def compile_template(environment: Environment, text: str) -> Template:
    """Compile a template. Raises CompileError with locations in the text."""
    parts: list[str | Expression] = []
    errors: list[CompileDiagnostic] = []
    after = 0
    for match in _BRACES.finditer(text):
        parts.append(text[after : match.start()])
        after = match.end()
        try:
            parts.append(_compile_part(environment, match[1]))
        except CompileError as failure:
            errors += [
                CompileDiagnostic(f.message, _shift_error(text, match.start(1), f.location))
                for f in failure.errors
            ]
    rest = text[after:]
    parts.append(rest)
    for braces, counterpart in (("{{", "}}"), ("}}", "{{")):
        if (at := rest.find(braces)) >= 0:
            errors.append(
                CompileDiagnostic(
                    f"{braces} without {counterpart}",
                    _shift_error(text, after + at, Location(1, 1)),
                )
            )
    if errors:
        raise CompileError(errors)
    return Template(tuple(part for part in parts if part != ""))


def _compile_part(environment: Environment, text: str) -> Expression:
    compiled = environment.compile(text)
    if compiled.type_name.startswith("optional"):
        raise CompileError([CompileDiagnostic('it may have no value; add a default: .orValue("")')])
    return compiled


def _shift_error(text: str, offset: int, inside: Location) -> Location:
    """Translate a location in an expression at this offset to a location in the text."""
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
