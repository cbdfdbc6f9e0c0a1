"""Parse the query parameters of logs, exec and attach.

Upstream: getContainerLogs, server.go; ValidatePodLogOptions, apis/core/v1/validation; NewOptions,
cri-streaming/pkg/streaming/remotecommand/httpstream.go; v1.36.4. Error texts are upstream's,
followed by a detail in parentheses where they name no parameter.
"""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import parse_qsl

import msgspec

from podstatus.kube.scalars.time import Time, TimeError
from podstatus.runtime.streams import LogOptions, OutputStream, StreamOptions
from podstatus.web.errors import HttpError, bad_request

Query = Mapping[str, Sequence[str]]
"""The values of each parameter, in order."""

_INTEGER = re.compile(r"([+-]?)0*(\d{1,19})", re.ASCII)
"""At most 19 digits, as an int64 has: Python refuses to parse very long numbers."""
_MAX_INT64 = 2**63 - 1
_SECOND = 1_000_000_000
_STREAMS = {"All": None, "Stdout": OutputStream.STDOUT, "Stderr": OutputStream.STDERR}


class LogRequest(msgspec.Struct, frozen=True):
    """Which attempt's log to read, and which part of it."""

    options: LogOptions
    previous: bool = False
    """The log of the previous attempt."""


def read_query(raw: str) -> dict[str, list[str]]:
    """The parameters of a raw query; bytes that are not UTF-8 become surrogate escapes."""
    query: dict[str, list[str]] = {}
    for name, value in parse_qsl(raw, keep_blank_values=True, errors="surrogateescape"):
        query.setdefault(name, []).append(value)
    return query


def log_request(query: Query, now: int) -> LogRequest:
    """The parameters of a log request; `now` in nanoseconds since the Unix epoch.

    Raises HttpError.
    """
    tail = _first(query, "tail") or _first(query, "tailLines")
    tail_lines = None if tail in (None, "all") else _parse_int("tailLines", tail)
    limit_bytes = _int_parameter(query, "limitBytes")
    stream = _first(query, "stream") or "All"
    if stream not in _STREAMS:
        supported = ", ".join(f'"{name}"' for name in _STREAMS)
        raise _invalid(f"stream: Unsupported value: supported values: {supported}")
    if tail_lines is not None and tail_lines < 0:
        raise _invalid(
            f"tailLines: Invalid value: {tail_lines}: must be greater than or equal to 0"
        )
    if tail_lines is not None and _STREAMS[stream] is not None:
        raise _invalid("`tailLines` and specific `stream` are mutually exclusive for now")
    if limit_bytes is not None and limit_bytes < 1:
        raise _invalid(f"limitBytes: Invalid value: {limit_bytes}: must be greater than 0")
    options = LogOptions(
        follow=_bool_parameter(query, "follow"),
        timestamps=_bool_parameter(query, "timestamps"),
        tail_lines=tail_lines,
        since=_since(query, now),
        limit_bytes=limit_bytes,
        stream=_STREAMS[stream],
    )
    return LogRequest(options, previous=_bool_parameter(query, "previous"))


def _since(query: Query, now: int) -> int | None:
    seconds, time = _int_parameter(query, "sinceSeconds"), _time_parameter(query, "sinceTime")
    if seconds is None:
        return time
    if time is not None:
        raise _invalid("at most one of `sinceTime` or `sinceSeconds` may be specified")
    if seconds < 1:
        raise _invalid(f"sinceSeconds: Invalid value: {seconds}: must be greater than 0")
    return max(0, now - seconds * _SECOND)


def stream_options(query: Query) -> StreamOptions:
    """The requested streams, by the kubelet's names or the API server's. Raises HttpError."""
    tty = _is_set(query, "tty")
    stdin = _is_set(query, "input", "stdin")
    stdout = _is_set(query, "output", "stdout")
    # A TTY has one output stream; upstream ignores stderr, too.
    stderr = _is_set(query, "error", "stderr") and not tty
    if not (stdin or stdout or stderr):
        raise bad_request("you must specify at least 1 of stdin, stdout, stderr")
    return StreamOptions(stdin=stdin, stdout=stdout, stderr=stderr, tty=tty)


def exec_command(query: Query) -> tuple[str, ...]:
    """The command to run. Raises HttpError if it is empty or has a null byte."""
    command = tuple(query.get("command", ()))
    if not command or not command[0]:
        raise bad_request("you must specify the command to run, as in command=ls&command=-l")
    if any("\0" in part for part in command):
        raise bad_request("a command cannot contain a null byte")
    return command


def _first(query: Query, name: str) -> str | None:
    values = query.get(name)
    return values[0] if values else None


def _is_set(query: Query, *names: str) -> bool:
    return any(_first(query, name) in ("1", "true") for name in names)


def _bool_parameter(query: Query, name: str) -> bool:
    """As upstream: any value but `0` and `false` is true, the empty one included."""
    value = _first(query, name)
    return value is not None and value != "0" and value.lower() != "false"


def _int_parameter(query: Query, name: str) -> int | None:
    value = _first(query, name)
    return None if value is None else _parse_int(name, value)


def _parse_int(name: str, text: str | None) -> int:
    match = _INTEGER.fullmatch(text or "")
    number = int(match[1] + match[2]) if match else _MAX_INT64 + 1
    if abs(number) > _MAX_INT64:
        raise _undecodable(name)
    return number


def _time_parameter(query: Query, name: str) -> int | None:
    value = _first(query, name)
    if not value:
        return None
    try:
        return max(0, Time.parse(value).unix_nanos())
    except TimeError as error:
        raise _undecodable(name) from error


def _undecodable(name: str) -> HttpError:
    return bad_request(f'{{"message": "Unable to decode query."}} ({name})')


def _invalid(why: str) -> HttpError:
    return HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, f'{{"message": "Invalid request."}} ({why})')
