"""A JSON syntax tree that keeps what Go's encoding/json depends on.

Python's parsers lose repeated keys, the spelling of numbers, and whether a string had escapes. They
also differ on invalid UTF-8, of which Go reads each byte as U+FFFD.
"""

import json
import re
from typing import NamedTuple, NoReturn, TypeAlias

from podstatus.kube.scalars.go_text import valid_text

MAX_DEPTH = 100
"""A checkpoint has six levels. Go would accept 10,000 levels in an unknown field, but no kubelet
writes such a file."""

_SPACE = re.compile(r"[ \t\n\r]*+")
_STRING = re.compile(r'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+)"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_LITERAL = re.compile(r"true|false|null")
_LITERALS = {"true": True, "false": False, "null": None}


class MalformedError(ValueError):
    """The text is invalid; the message says why."""


class JsonString(NamedTuple):
    """A string: its raw text between the quotes, and its value."""

    raw: str
    value: str


class JsonNumber(NamedTuple):
    """A number, as spelled in the text."""

    raw: str


class JsonArray(NamedTuple):
    """An array and its elements, in order."""

    items: tuple["JsonNode", ...]


class JsonObject(NamedTuple):
    """An object: all members in the order of the text, including repeated keys."""

    members: tuple[tuple[str, "JsonNode"], ...]


JsonNode: TypeAlias = JsonString | JsonNumber | JsonArray | JsonObject | bool | None


def scan(data: bytes) -> JsonNode:
    """Parse a text that is a single JSON value. Raises MalformedError."""
    scanner = _Scanner(data.decode("utf-8", "surrogateescape"))
    node = scanner.value(depth=0)
    scanner.expect_end()
    return node


class _Scanner:
    """A recursive descent parser over one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def value(self, *, depth: int) -> JsonNode:
        if depth > MAX_DEPTH:
            raise MalformedError(f"it is nested more than {MAX_DEPTH} levels deep")
        if self._consume("{"):
            return self._object(depth)
        if self._consume("["):
            return self._array(depth)
        if self._text.startswith('"', self._position):
            return self._string()
        if match := self._match(_NUMBER):
            return JsonNumber(match)
        return _LITERALS[self._match(_LITERAL) or self._raise_syntax_error("a value")]

    def expect_end(self) -> None:
        self._skip_space()
        if self._position < len(self._text):
            self._raise_syntax_error("the end")

    def _object(self, depth: int) -> JsonObject:
        members: list[tuple[str, JsonNode]] = []
        while not (not members and self._consume("}")):
            self._skip_space()
            key = self._string().value
            if not self._consume(":"):
                self._raise_syntax_error("':'")
            members.append((key, self.value(depth=depth + 1)))
            if self._at_end_of("}"):
                break
        return JsonObject(tuple(members))

    def _array(self, depth: int) -> JsonArray:
        items: list[JsonNode] = []
        while not (not items and self._consume("]")):
            items.append(self.value(depth=depth + 1))
            if self._at_end_of("]"):
                break
        return JsonArray(tuple(items))

    def _at_end_of(self, bracket: str) -> bool:
        """Consume the bracket and return True, or consume a comma and return False."""
        if self._consume(bracket):
            return True
        if not self._consume(","):
            self._raise_syntax_error(f"',' or '{bracket}'")
        return False

    def _string(self) -> JsonString:
        match = _STRING.match(self._text, self._position)
        if match is None:
            if self._text.startswith('"', self._position):
                raise MalformedError(
                    f"not JSON: the string at {self._position} is not terminated or is invalid"
                )
            self._raise_syntax_error("a string")
        self._position = match.end()
        # Python's parser keeps lone surrogates; Go reads U+FFFD.
        value = json.loads(match[0]) if "\\" in match[1] else match[1]
        return JsonString(match[1], valid_text(value))

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._position)
        if match is None:
            return ""
        self._position = match.end()
        return match[0]

    def _consume(self, char: str) -> bool:
        self._skip_space()
        matched = self._text.startswith(char, self._position)
        self._position += matched
        return matched

    def _skip_space(self) -> None:
        self._match(_SPACE)

    def _raise_syntax_error(self, expected: str) -> NoReturn:
        if self._position >= len(self._text):
            raise MalformedError(f"not JSON: it ends where {expected} is expected")
        char = repr(self._text[self._position].encode(errors="surrogateescape"))[1:]
        raise MalformedError(f"not JSON: {char} at {self._position}, where {expected} is expected")
