"""Value types of scalar settings: numbers, durations, choices, names, addresses.

Upstream: the flags of cmd/kubelet/app/options and the checks of
pkg/kubelet/apis/config/validation, v1.36.4.
"""

import ipaddress
import re
from collections.abc import Callable, Collection
from typing import Any
from urllib.parse import urlsplit

from podstatus.agent.settings.schema.setting import InvalidValueError, ValueT, ValueType
from podstatus.kube.scalars.duration import DurationError, parse_duration
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.kube.validation.names import dns_subdomain

_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
PROCESS, CRI = "process", "cri"
RUNTIMES = (PROCESS, CRI, "simulated")
"""Built-in runtimes; the first is the default with the embedded API server."""
_RUNTIME = f"{PROCESS}, {CRI}, simulated, or a custom class such as my_runtime:MyRuntime"
_CLASS_PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_BYTES = "a positive number of bytes, such as 10Mi"
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")


def text_type(
    metavar: str, parse: Callable[[str], ValueT], allowed: str, *, allow_empty: bool = False
) -> ValueType[ValueT]:
    """A value type whose values are strings in configuration files, too."""

    def read_document(value: Any) -> ValueT:
        if not isinstance(value, str):
            raise InvalidValueError(value, allowed)
        return parse(value)

    return ValueType(
        metavar=metavar, parse_text=parse, parse_document=read_document, allow_empty=allow_empty
    )


def integer(minimum: int, maximum: int | None = None) -> ValueType[int]:
    """An integer from `minimum` to `maximum`, both included."""
    allowed = f"an integer of at least {minimum}"
    if maximum is not None:
        allowed = f"an integer from {minimum} to {maximum}"

    def check(number: int) -> int:
        if number < minimum or (maximum is not None and number > maximum):
            raise InvalidValueError(number, allowed)
        return number

    def read_text(text: str) -> int:
        if not _INTEGER.fullmatch(text):
            raise InvalidValueError(text, allowed)
        return check(int(text))

    def read_document(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise InvalidValueError(value, allowed)
        return check(value)

    return ValueType(metavar="NUMBER", parse_text=read_text, parse_document=read_document)


def duration(
    minimum: float, maximum: float | None = None, *, allowed: str, whole_seconds: bool = False
) -> ValueType[float]:
    """A Go duration, parsed to seconds. `allowed` describes the limits in error messages."""

    def read(text: str) -> float:
        try:
            seconds = parse_duration(text)
        except DurationError as error:
            raise InvalidValueError(text, allowed) from error
        if seconds < minimum or (maximum is not None and seconds > maximum):
            raise InvalidValueError(text, allowed)
        if whole_seconds and not seconds.is_integer():
            raise InvalidValueError(text, allowed)
        return seconds

    return text_type("DURATION", read, allowed)


def choice(options: Collection[str]) -> ValueType[str]:
    """One of the given words."""
    allowed = f"one of {', '.join(options)}"

    def read(text: str) -> str:
        if text not in options:
            raise InvalidValueError(text, allowed)
        return text

    return text_type("|".join(options), read, allowed)


def _parse_runtime(text: str) -> str:
    if text not in RUNTIMES and not _CLASS_PATH.fullmatch(text):
        raise InvalidValueError(text, _RUNTIME)
    return text


def _parse_bool(text: str) -> bool:
    if text not in _TRUE + _FALSE:
        raise InvalidValueError(text, "true or false")
    return text in _TRUE


def _parse_bool_document(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidValueError(value, "true or false")
    return value


def _parse_text(text: str) -> str:
    if not text or not text.isprintable():
        raise InvalidValueError(text, "a single line of printable characters")
    return text


def _parse_address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise InvalidValueError(text, "an IP address of this machine") from error


def _parse_node_name(text: str) -> str:
    # As upstream's GetHostname does.
    name = text.strip().lower()
    if errors := dns_subdomain(name):
        raise InvalidValueError(text, f"a valid node name: {'; '.join(errors)}")
    return name


def _parse_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise InvalidValueError(text, "a URL with http:// or https:// and a host")
    return text


def _parse_bytes(text: str) -> int:
    try:
        amount = Quantity(text).nanos
    except QuantityError as error:
        raise InvalidValueError(text, _BYTES) from error
    if amount < 10**9 or amount % 10**9:
        raise InvalidValueError(text, _BYTES)
    return amount // 10**9


BOOL = ValueType(metavar="", parse_text=_parse_bool, parse_document=_parse_bool_document)
ADDRESS = text_type("ADDRESS", _parse_address, "an IP address")
NODE_NAME = text_type("NAME", _parse_node_name, "a valid node name")
RUNTIME = text_type("RUNTIME", _parse_runtime, _RUNTIME)
BYTES = text_type("BYTES", _parse_bytes, _BYTES)
TEXT = text_type("TEXT", _parse_text, "a string")
URL = text_type("URL", _parse_url, "a URL")
PORT = integer(0, 65535)
PERIOD = duration(0.001, allowed="a duration of 1ms or more, such as 10s or 1m30s")
