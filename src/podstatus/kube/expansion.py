"""Expand `$(NAME)` references in commands, arguments and values, as the kubelet does.

Upstream: Expand, third_party/forked/golang/expansion/expand.go v1.36.4. As there, `$$` is a literal
`$`, a name is any text up to the next `)`, and an unknown reference is left unchanged. One
difference: upstream expands without a limit, and `A1=$(A0)$(A0)`, `A2=$(A1)$(A1)`, … doubles at
each step. Here the length is computed first, and no string is built that execve would not accept.
"""

import re
from collections.abc import Callable, Iterable, Mapping

MAX_STRING_BYTES = 128 * 1024
"""Maximum size of an argument or variable with its final NUL: MAX_ARG_STRLEN of Linux."""
MAX_TOTAL_BYTES = 2 * 1024 * 1024 - 64 * 1024
"""Maximum size of all arguments and variables: the limit of Linux with the default stack of 8 MiB,
minus a reserve for the programs that are executed on the way to the command."""
_POINTER_BYTES = 8
"""Bytes that Linux counts for each string in addition to its content."""

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
"""An escaped `$`, or a reference. Any other `$` is literal."""


class ArgumentListTooLongError(Exception):
    """The strings exceed what execve accepts; the message names the limit."""


class ExecBudget:
    """The remaining bytes for the arguments and variables of one execve call."""

    def __init__(self, total: int = MAX_TOTAL_BYTES) -> None:
        self._total = self._remaining = total

    def expand(self, text: str, values: Mapping[str, str], *, name: str = "") -> str:
        """Expand a text and subtract its size. Raises ArgumentListTooLongError.

        `name` is the name of the variable, if the text is the value of one.
        """
        expanded = expand(text, values)
        self.spend(expanded, name=name)
        return expanded

    def spend(self, text: str, *, name: str = "") -> None:
        """Subtract the size of an argument or variable. Raises ArgumentListTooLongError."""
        size = _byte_length(text) + (_byte_length(name) + 1 if name else 0) + 1
        if size > MAX_STRING_BYTES:
            raise _string_too_long()
        self._remaining -= size + _POINTER_BYTES
        if self._remaining < 0:
            raise ArgumentListTooLongError(
                f"variables and arguments have more than {self._total} bytes, "
                "the limit for a process"
            )


def expand(text: str, values: Mapping[str, str]) -> str:
    """Expand references to these values; unknown references are left unchanged.

    Raises ArgumentListTooLongError.
    """
    return expand_with(text, lambda name: values.get(name, f"$({name})"))


def expand_command(words: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Expand all words of a command. Raises ArgumentListTooLongError."""
    budget = ExecBudget()
    return tuple(budget.expand(word, values) for word in words)


def expand_with(text: str, value: Callable[[str], str]) -> str:
    """Replace each reference by the result of `value` for its name.

    Raises ArgumentListTooLongError before the string is built.
    """
    # There is no reference after the last `)`; searching for the end of each `$(` there would take
    # quadratic time.
    end = text.rfind(")") + 1
    pieces, length, at = [], 0, 0
    for mark in _REFERENCE.finditer(text, 0, end):
        name: str | None = mark[1]
        for piece in (text[at : mark.start()], "$" if name is None else value(name)):
            pieces.append(piece)
            length += len(piece)
        at = mark.end()
        if length > MAX_STRING_BYTES:
            raise _string_too_long()
    rest = text[at:end] + text[end:].replace("$$", "$")
    if length + len(rest) > MAX_STRING_BYTES:
        raise _string_too_long()
    return "".join((*pieces, rest))


def expand_strictly(text: str, values: Mapping[str, str]) -> tuple[str, list[str]]:
    """Expand references; return the text and the names without a value or with an empty one.

    Upstream: ExpandContainerVolumeMounts, pkg/kubelet/container/helpers.go v1.36.4.
    Raises ArgumentListTooLongError.
    """
    missing: set[str] = set()

    def lookup(name: str) -> str:
        value = values.get(name, "")
        if not value:
            missing.add(name)
        return value

    return expand_with(text, lookup), sorted(missing)


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _string_too_long() -> ArgumentListTooLongError:
    return ArgumentListTooLongError(
        f"has more than {MAX_STRING_BYTES} bytes, the Linux limit for one string"
    )
