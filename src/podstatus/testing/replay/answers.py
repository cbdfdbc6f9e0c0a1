"""Encoding of results: documents as Go prints them, times relative to the start."""

import re
from collections.abc import Mapping

import msgspec

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.scalars.time import Time

START_TEXT = "2217-03-09T00:00:00Z"
"""The start time of every case, far from any recorded time."""
START = Time.parse(START_TEXT)

_STAMP = re.compile(rb'"(221[789]-[0-9T:-]+Z)"')


def encode_result(result: object) -> bytes:
    """Encode a result as one line of JSON."""
    return relative_times(msgspec.json.encode(_to_builtins(result)))


def relative_times(text: bytes) -> bytes:
    """Replace the times of this run in JSON text by `NOW` or `NOW+7s`."""
    return _STAMP.sub(_distance, text)


def _distance(match: re.Match[bytes]) -> bytes:
    seconds = (Time.parse(match[1].decode()) - START) // 1_000_000_000
    return f'"NOW+{seconds}s"'.encode() if seconds else b'"NOW"'


def _to_builtins(result: object) -> object:
    if isinstance(result, Wire):
        return to_document(result)
    if isinstance(result, Mapping):
        return {key: _to_builtins(value) for key, value in result.items()}
    if isinstance(result, list | tuple):
        return [_to_builtins(value) for value in result]
    return result
