"""Server-sent events out of a stream of bytes, cut anywhere.

The specification: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from collections.abc import Iterable, Iterator

import msgspec

_MAX_LINE_BYTES = 4 * 2**20
"""Bytes of one event: far more than any pod's."""


class SseLineTooLongError(ValueError):
    """A line that does not end."""


class SseEvent(msgspec.Struct, frozen=True):
    """One event; a sign of life is one without a name."""

    event: str = ""
    data: str = ""
    id: str = ""
    """Of the last event that had one."""


def parse_sse(chunks: Iterable[bytes]) -> Iterator[SseEvent]:
    """The events, as they are complete. Raises TooLongError."""
    event = last = ""
    data: list[str] = []
    for line in _lines(chunks):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name if line else None:
            case None:
                yield SseEvent(event, "\n".join(data), last)
                event, data = "", []
            case "event":
                event = value
            case "data":
                data.append(value)
            case "id":
                last = value


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for piece in chunks:
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > _MAX_LINE_BYTES:
            raise SseLineTooLongError("an event does not end")
        yield from (line.removesuffix(b"\r").decode(errors="replace") for line in lines)
