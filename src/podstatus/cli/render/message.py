"""Wrap messages of commands, without `rich`: they are often all that a command prints."""

import re
import textwrap

_COMMAND = re.compile(
    r"(?<!^podstatus: )(?<=: )"
    r"(?:cd \S+ && )?(?:\S+ -P -m podstatus\.cli|'[^']*podstatus'|\S*podstatus|kubectl|make) .+?"
    r"(?=;|, or |$)"
)
"""A command that a message suggests: after a colon, until the end of the clause.

Not after the name of the program that begins each message: a root directory may follow it, such as
`/home/me/.podstatus`.
"""
_NO_BREAK = "\x00"
"""Stands for a space at which a line is not broken."""


def wrap_message(text: str, width: int) -> str:
    """Wrap a line of prose; a command in it is not broken, so that it can be copied."""
    if len(text) <= width:
        return text
    whole = _COMMAND.sub(lambda command: command[0].replace(" ", _NO_BREAK), text)
    lines = textwrap.wrap(
        whole, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace(_NO_BREAK, " ")
