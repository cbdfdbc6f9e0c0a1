"""Texts with expressions between braces: `{{ pod.name }} restarted {{ pod.restarts }} times`."""

import json
import re
from typing import Any

import msgspec

from podstatus.alerts.cel.expression import Asked, Environment, Expression
from podstatus.alerts.evaluator.ports import Failed
from podstatus.alerts.model import Place
from podstatus.alerts.rules.static_checks import ExpressionError, Flaw

_BRACES = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_LONGEST = 2_000
"""Characters of a text that was filled in."""


class Template(msgspec.Struct, frozen=True):
    """A text, and the expressions in it."""

    parts: tuple[str | Expression, ...]

    def fill(self, facts: Asked) -> str:
        """The text with what is known. An expression that fails is told in its place."""
        return "".join(
            part if isinstance(part, str) else _text(part.value(facts)) for part in self.parts
        )[:_LONGEST]


def compile_template(environment: Environment, text: str) -> Template:
    """A template. Raises ExpressionError, with places in the text."""
    parts: list[str | Expression] = []
    flaws: list[Flaw] = []
    after = 0
    for found in _BRACES.finditer(text):
        parts.append(text[after : found.start()])
        after = found.end()
        try:
            parts.append(_part(environment, found[1]))
        except ExpressionError as error:
            flaws += [Flaw(f.message, _moved(text, found.start(1), f.place)) for f in error.flaws]
    rest = text[after:]
    parts.append(rest)
    for braces, cure in (("{{", "}}"), ("}}", "{{")):
        if (at := rest.find(braces)) >= 0:
            flaws.append(Flaw(f"{braces} without {cure}", _moved(text, after + at, Place(1, 1))))
    if flaws:
        raise ExpressionError(flaws)
    return Template(tuple(part for part in parts if part != ""))


def _part(environment: Environment, text: str) -> Expression:
    compiled = environment.compile(text)
    if compiled.kind.startswith("optional"):
        raise ExpressionError([Flaw('it may be nothing; say what then: .orValue("")')])
    return compiled


def _moved(text: str, offset: int, inside: Place) -> Place:
    """A place in an expression that begins at this offset, as a place in the text."""
    before = text[:offset]
    line = before.count("\n") + inside.line
    column = inside.column + (offset - before.rfind("\n") - 1 if inside.line == 1 else 0)
    return Place(line, column)


def _text(value: Any) -> str:
    match value:
        case Failed():
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
