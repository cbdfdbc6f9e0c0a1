"""`$(NAME)` in commands, arguments and values, as the kubelet reads it.

Upstream: Expand, third_party/forked/golang/expansion/expand.go v1.36.4. Kept from there: `$$` is
one `$`, a name may be any text up to the next `)`, and what is not known stays as it is written.
Not kept: upstream builds whatever the references add up to, and `A1=$(A0)$(A0)`, `A2=$(A1)$(A1)`, …
doubles at each step. Here the length is added up first, and nothing longer is built than a
process can be given.
"""

import re
from collections.abc import Callable, Iterable, Mapping

MAX_STRING_BYTES = 128 * 1024
"""Bytes of one argument or variable, with its final NUL: MAX_ARG_STRLEN of Linux."""
MAX_TOTAL_BYTES = 2 * 1024 * 1024 - 64 * 1024
"""Bytes of all arguments and variables: what Linux takes with the usual stack of 8 MiB, less some
for the programs that are executed on the way to the command."""
_POINTER_BYTES = 8
"""Bytes that Linux counts for each string besides its own."""

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
"""An escaped `$`, or a reference. A `$` that begins neither is text."""


class ArgumentListTooLongError(Exception):
    """Strings are larger than a process can be given; the message names the limit."""


class ExecBudget:
    """What is left of the bytes that one execve takes. All that was built counts, once each."""

    def __init__(self, total: int = MAX_TOTAL_BYTES) -> None:
        self._total = self._remaining = total

    def expand(self, text: str, values: Mapping[str, str], *, name: str = "") -> str:
        """The text with references put in, taken from the budget. Raises TooLargeError.

        `name`: of the variable whose value it is.
        """
        expanded = expand(text, values)
        self.spend(expanded, name=name)
        return expanded

    def spend(self, text: str, *, name: str = "") -> None:
        """Take an argument, or the value of a variable. Raises TooLargeError."""
        size = _byte_length(text) + (_byte_length(name) + 1 if name else 0) + 1
        if size > MAX_STRING_BYTES:
            raise _string_too_long()
        self._remaining -= size + _POINTER_BYTES
        if self._remaining < 0:
            raise ArgumentListTooLongError(
                f"variables and arguments have more than {self._total} bytes, "
                "all that a process can be given"
            )


def expand(text: str, values: Mapping[str, str]) -> str:
    """The text with references to these values put in; others stay as they are.

    Raises TooLargeError.
    """
    return expand_with(text, lambda name: values.get(name, f"$({name})"))


def expand_command(words: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """The words of a command with references put in. Raises TooLargeError."""
    budget = ExecBudget()
    return tuple(budget.expand(word, values) for word in words)


def expand_with(text: str, value: Callable[[str], str]) -> str:
    """The text with each reference replaced by what `value` says about its name.

    Raises TooLargeError before it is built.
    """
    # Behind the last `)` there is no reference: to look for its end at each `$(` would take time
    # in the square of the length.
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
    """The text with references put in, and the names that have no value or an empty one.

    Upstream: ExpandContainerVolumeMounts, pkg/kubelet/container/helpers.go v1.36.4.
    Raises TooLargeError.
    """
    missing: set[str] = set()

    def known(name: str) -> str:
        value = values.get(name, "")
        if not value:
            missing.add(name)
        return value

    return expand_with(text, known), sorted(missing)


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _string_too_long() -> ArgumentListTooLongError:
    return ArgumentListTooLongError(
        f"has more than {MAX_STRING_BYTES} bytes, the Linux limit for one string"
    )
