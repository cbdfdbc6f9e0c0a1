"""How answers are written: documents as Go prints them, times as distances from the start."""

import re
from collections.abc import Mapping

import msgspec

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.encoding.wire import Wire
from podstatus.kube.scalars.time import Time

START_TEXT = "2217-03-09T00:00:00Z"
"""When every case begins: a moment that no recorded time is near to."""
START = Time.parse(START_TEXT)

_STAMP = re.compile(rb'"(221[789]-[0-9T:-]+Z)"')


def encode_result(answer: object) -> bytes:
    """The answer as one line of JSON."""
    return relative_times(msgspec.json.encode(_to_builtins(answer)))


def relative_times(text: bytes) -> bytes:
    """JSON text with the times of this run as `NOW` or `NOW+7s`."""
    return _STAMP.sub(_distance, text)


def _distance(match: re.Match[bytes]) -> bytes:
    seconds = (Time.parse(match[1].decode()) - START) // 1_000_000_000
    return f'"NOW+{seconds}s"'.encode() if seconds else b'"NOW"'


def _to_builtins(answer: object) -> object:
    if isinstance(answer, Wire):
        return to_document(answer)
    if isinstance(answer, Mapping):
        return {key: _to_builtins(value) for key, value in answer.items()}
    if isinstance(answer, list | tuple):
        return [_to_builtins(value) for value in answer]
    return answer
