"""JSON text as Go's encoding/json sees it, before it knows what the values are for.

Python's own parsers lose what Go goes by: repeated keys, how a number was spelled, whether a
string was written with escapes. They also disagree with it about bytes that are no text,
which Go reads as U+FFFD, one for each.
"""

import json
import re
from typing import NamedTuple, NoReturn, TypeAlias

from podstatus.kube.scalars.go_text import valid_text

MAX_DEPTH = 100
"""A checkpoint is six levels deep. Go would follow 10,000 levels of a field it does not know;
so deep a file was not written by a kubelet."""

_SPACE = re.compile(r"[ \t\n\r]*+")
_STRING = re.compile(r'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+)"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_LITERAL = re.compile(r"true|false|null")
_LITERALS = {"true": True, "false": False, "null": None}


class MalformedError(ValueError):
    """A text is not what it should be; the message says what is wrong with it."""


class JsonString(NamedTuple):
    """A string: as it was written between its quotes, and what that means."""

    raw: str
    value: str


class JsonNumber(NamedTuple):
    """A number, as it was written."""

    raw: str


class JsonArray(NamedTuple):
    """An array."""

    items: tuple["JsonNode", ...]


class JsonObject(NamedTuple):
    """An object: every member in the order of the text, repeated keys too."""

    members: tuple[tuple[str, "JsonNode"], ...]


JsonNode: TypeAlias = JsonString | JsonNumber | JsonArray | JsonObject | bool | None


def scan(data: bytes) -> JsonNode:
    """The one JSON value that this text is. Raises MalformedError."""
    scanner = _Scanner(data.decode("utf-8", "surrogateescape"))
    node = scanner.value(depth=0)
    scanner.expect_end()
    return node


class _Scanner:
    """Reads a text from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def value(self, *, depth: int) -> JsonNode:
        if depth > MAX_DEPTH:
            raise MalformedError(f"not JSON that we follow: over {MAX_DEPTH} levels deep")
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
        """Whether the bracket closes here; if not there is a comma, or it is no JSON."""
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
                    f"not JSON: the string that begins at {self._position} does not end well"
                )
            self._raise_syntax_error("a string")
        self._position = match.end()
        # Python's parser leaves half of a surrogate pair as it is; Go reads U+FFFD.
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
        found = self._text.startswith(char, self._position)
        self._position += found
        return found

    def _skip_space(self) -> None:
        self._match(_SPACE)

    def _raise_syntax_error(self, expected: str) -> NoReturn:
        if self._position >= len(self._text):
            raise MalformedError(f"not JSON: it ends where {expected} is expected")
        found = repr(self._text[self._position].encode(errors="surrogateescape"))[1:]
        raise MalformedError(f"not JSON: {found} at {self._position}, where {expected} is expected")
