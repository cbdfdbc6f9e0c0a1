"""Label selectors: `app=web,tier in (1,2),!old`.

Upstream: labels.Parse and Requirement.Matches, apimachinery v0.36.4, pkg/labels/selector.go.
`in` and `notin` are operators only where an operator is expected, so they are valid label keys.

    LabelSelectorError     invalid selector; the message is that of kube-apiserver
"""

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NoReturn, TypeAlias

import msgspec

from podstatus.kube.scalars.go_text import go_quoted, parse_int64
from podstatus.kube.validation.names import label_value, qualified_name

Operator: TypeAlias = Literal["in", "notin", "=", "==", "!=", "gt", "lt", "exists", "!"]

_OPERATORS: dict[str, Operator] = {
    "in": "in",
    "notin": "notin",
    "=": "=",
    "==": "==",
    "!=": "!=",
    ">": "gt",
    "<": "lt",
}
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_END = ""
# Upstream's lexer ends a word at a NUL, and the whole text at a NUL that starts a word.
_PART = re.compile("[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>\0]+)\0?")


class LabelSelectorError(Exception):
    """The text is not a valid label selector."""


class Requirement(msgspec.Struct, frozen=True):
    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "in" | "=" | "==":
                return labels.get(self.key) in self.values
            case "notin" | "!=":
                return labels.get(self.key) not in self.values
            case "exists":
                return self.key in labels
            case "!":
                return self.key not in labels
        return self._compares(parse_int64(labels.get(self.key, "")))

    def _compares(self, number: int | None) -> bool:
        bound = parse_int64(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "gt" else number < bound


class ParsedLabelSelector(msgspec.Struct, frozen=True):
    """Selects objects that match all requirements; without any, all objects."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels is selected."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def parse_label_selector(text: str) -> ParsedLabelSelector:
    """Parse a `labelSelector`. Raises LabelSelectorError."""
    requirements = _Parser(text).requirements()
    return ParsedLabelSelector(tuple(sorted(requirements, key=lambda requirement: requirement.key)))


class _Parser:
    """A recursive descent parser over one selector."""

    def __init__(self, text: str) -> None:
        self._parts = [*_split(text), _END]
        self._position = 0

    def requirements(self) -> Iterator[Requirement]:
        while self._peek() != _END:
            if not (self._at_word() or self._peek() == "!"):
                _raise_parse_error(
                    f"found '{self._peek()}', expected: !, identifier, or 'end of string'"
                )
            yield self._requirement()
            self._separator()

    def _separator(self) -> None:
        part = self._next()
        if part == _END:
            self._position -= 1
        elif part != ",":
            _raise_parse_error(f"found '{part}', expected: ',' or 'end of string'")
        elif not (self._at_word() or self._peek() == "!"):
            _raise_parse_error(f"found '{self._peek()}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._next()
        key = self._word()
        if errors := qualified_name(key):
            _raise_requirement_error(f"<nil>: Invalid value: {go_quoted(key)}: {'; '.join(errors)}")
        if absent:
            return Requirement(key, "!")
        if self._peek() in (_END, ","):
            return Requirement(key, "exists")
        operator = self._operator()
        values = self._set() if operator in ("in", "notin") else {self._exact_value()}
        return _checked(Requirement(key, operator, tuple(sorted(values))))

    def _operator(self) -> Operator:
        part = self._next()
        if part not in _OPERATORS:
            expected = "in, notin, =, ==, !=, gt, lt"
            _raise_requirement_error(f"found '{part}', expected: {expected}")
        return _OPERATORS[part]

    def _exact_value(self) -> str:
        return "" if self._peek() in (_END, ",") else self._word()

    def _set(self) -> set[str]:
        if (part := self._next()) != "(":
            _raise_requirement_error(f"found '{part}' expected: '('")
        if not self._at_word() and self._peek() not in (",", ")"):
            _raise_requirement_error(f"found '{self._peek()}', expected: ',', ')' or identifier")
        values = {self._element()}
        while (part := self._next()) == ",":
            values.add(self._element())
        if part != ")":
            _raise_requirement_error(f"found '{part}', expected: ',' or ')'")
        return values

    def _element(self) -> str:
        """Return one value of a set; nothing between two commas is the empty value."""
        if self._peek() in (",", ")"):
            return ""
        if not self._at_word():
            _raise_requirement_error(f"found '{self._peek()}', expected: ',', or identifier")
        return self._next()

    def _word(self) -> str:
        if not self._at_word():
            _raise_requirement_error(f"found '{self._peek()}', expected: identifier")
        return self._next()

    def _at_word(self) -> bool:
        part = self._peek()
        return part != _END and part not in _SYMBOLS

    def _peek(self) -> str:
        return self._parts[self._position]

    def _next(self) -> str:
        self._position += 1
        return self._parts[self._position - 1]


def _split(text: str) -> Iterator[str]:
    position = 0
    while match := _PART.match(text, position):
        yield match[1]
        position = match.end()


def _checked(requirement: Requirement) -> Requirement:
    errors = dict.fromkeys(_value_errors(requirement))
    if errors:
        messages = list(errors)
        _raise_requirement_error(messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]")
    return requirement


def _value_errors(requirement: Requirement) -> Iterator[str]:
    values = requirement.values
    if requirement.operator in ("gt", "lt") and parse_int64(values[0]) is None:
        rule = "for 'Gt', 'Lt' operators, the value must be an integer"
        yield f"values[0]: Invalid value: {go_quoted(values[0])}: {rule}"
    for index, value in enumerate(values):
        if errors := label_value(value):
            where = f"values[{index}][{requirement.key}]"
            yield f"{where}: Invalid value: {go_quoted(value)}: {'; '.join(errors)}"


def _raise_parse_error(reason: str) -> NoReturn:
    raise LabelSelectorError(reason)


def _raise_requirement_error(reason: str) -> NoReturn:
    _raise_parse_error(f"unable to parse requirement: {reason}")
