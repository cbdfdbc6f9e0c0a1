"""`$(NAME)` in commands, arguments and values, as the kubelet reads it.

Upstream: Expand, third_party/forked/golang/expansion/expand.go v1.36.4. Kept from there: `$$` is
one `$`, a name may be any text up to the next `)`, and what is not known stays as it is written.
"""

import re
from collections.abc import Callable, Mapping

_MARK = re.compile(r"\$(?:\$|\(([^)]*)\))")
"""An escaped `$`, or a reference. A `$` that begins neither is text."""


def expand(text: str, values: Mapping[str, str]) -> str:
    """The text with references to these values put in; others stay as they are."""
    return expand_with(text, lambda name: values.get(name, f"$({name})"))


def expand_with(text: str, value: Callable[[str], str]) -> str:
    """The text with each reference replaced by what `value` says about its name."""

    def replaced(mark: re.Match[str]) -> str:
        name: str | None = mark[1]
        return "$" if name is None else value(name)

    return _MARK.sub(replaced, text)


def expand_strictly(text: str, values: Mapping[str, str]) -> tuple[str, list[str]]:
    """The text with references put in, and the names that have no value or an empty one.

    Upstream: ExpandContainerVolumeMounts, pkg/kubelet/container/helpers.go v1.36.4.
    """
    missing: set[str] = set()

    def known(name: str) -> str:
        value = values.get(name, "")
        if not value:
            missing.add(name)
        return value

    return expand_with(text, known), sorted(missing)
