"""Parser for server-sent events in a stream of byte chunks.

Specification: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from collections.abc import Iterable, Iterator

import msgspec

_MAX_LINE_BYTES = 4 * 2**20
"""Maximum length of a line, far above that of any pod."""


class SseLineTooLongError(ValueError):
    """A line exceeds the maximum length."""


class SseEvent(msgspec.Struct, frozen=True):
    """A server-sent event; a keep-alive has no name."""

    event: str = ""
    data: str = ""
    id: str = ""
    """The last event ID received so far."""


def parse_sse(chunks: Iterable[bytes]) -> Iterator[SseEvent]:
    """Yield each event when it is complete. Raises SseLineTooLongError."""
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
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _MAX_LINE_BYTES:
            raise SseLineTooLongError("a line of the event stream is too long")
        yield from (line.removesuffix(b"\r").decode(errors="replace") for line in lines)
