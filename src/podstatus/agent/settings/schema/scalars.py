"""What the values of settings may be: numbers, durations, words, names, addresses.

Upstream: the flags of cmd/kubelet/app/options and the checks of
pkg/kubelet/apis/config/validation, v1.36.4.
"""

import ipaddress
import re
from collections.abc import Callable, Collection
from typing import Any
from urllib.parse import urlsplit

from podstatus.agent.settings.schema.setting import Kind, NotAllowedError
from podstatus.kube.scalars.duration import DurationError, parse_duration
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.kube.validation.names import dns_subdomain

_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
PROCESS = "process"
RUNTIMES = (PROCESS, "simulated")
"""Those that are ours; the first one is the default with an API server of our own."""
_RUNTIME = f"{' or '.join(RUNTIMES)}, or a class of your own as in my_runtime:MyRuntime"
_IN_A_MODULE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_BYTES = "a number of bytes from 1 on, such as 10Mi"
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")


def kind_of(metavar: str, read: Callable[[str], Any], allowed: str) -> Kind:
    """A kind whose values are texts in files too."""

    def read_document(value: Any) -> Any:
        if not isinstance(value, str):
            raise NotAllowedError(value, allowed)
        return read(value)

    return Kind(metavar=metavar, read_text=read, read_document=read_document)


def whole(least: int, most: int | None = None) -> Kind:
    """A whole number from `least` on."""
    allowed = f"a whole number from {least} on"
    if most is not None:
        allowed = f"a whole number from {least} to {most}"

    def check(number: int) -> int:
        if number < least or (most is not None and number > most):
            raise NotAllowedError(number, allowed)
        return number

    def read_text(text: str) -> int:
        if not _WHOLE.fullmatch(text):
            raise NotAllowedError(text, allowed)
        return check(int(text))

    def read_document(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise NotAllowedError(value, allowed)
        return check(value)

    return Kind(metavar="NUMBER", read_text=read_text, read_document=read_document)


def duration(least: float, most: float | None = None, *, allowed: str, whole: bool = False) -> Kind:
    """Seconds, written as a duration, `whole` ones only; `allowed` says the limits."""

    def read(text: str) -> float:
        try:
            seconds = parse_duration(text)
        except DurationError as error:
            raise NotAllowedError(text, allowed) from error
        if seconds < least or (most is not None and seconds > most):
            raise NotAllowedError(text, allowed)
        if whole and not seconds.is_integer():
            raise NotAllowedError(text, allowed)
        return seconds

    return kind_of("DURATION", read, allowed)


def choice(options: Collection[str]) -> Kind:
    """One of some words."""
    allowed = f"one of {', '.join(options)}"

    def read(text: str) -> str:
        if text not in options:
            raise NotAllowedError(text, allowed)
        return text

    return kind_of("|".join(options), read, allowed)


def _read_runtime(text: str) -> str:
    if text not in RUNTIMES and not _IN_A_MODULE.fullmatch(text):
        raise NotAllowedError(text, _RUNTIME)
    return text


def _read_truth(text: str) -> bool:
    if text not in _TRUE + _FALSE:
        raise NotAllowedError(text, "true or false")
    return text in _TRUE


def _read_truth_document(value: Any) -> bool:
    if not isinstance(value, bool):
        raise NotAllowedError(value, "true or false")
    return value


def _read_path(text: str) -> str:
    if not text or "\0" in text:
        raise NotAllowedError(text, "a path")
    return text


def _read_text(text: str) -> str:
    if not text or not text.isprintable():
        raise NotAllowedError(text, "a text of one line")
    return text


def _read_paths(text: Any) -> tuple[str, ...]:
    if not isinstance(text, str):
        raise NotAllowedError(text, "paths, separated by commas")
    return tuple(_read_path(part.strip()) for part in text.split(",") if part.strip())


def _read_address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise NotAllowedError(text, "an IP address of this machine") from error


def _read_node_name(text: str) -> str:
    # As the kubelet does with what it was told.
    name = text.strip().lower()
    if wrong := dns_subdomain(name):
        raise NotAllowedError(text, f"a node's name: {'; '.join(wrong)}")
    return name


def _read_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise NotAllowedError(text, "an address that begins with http:// or https:// and a host")
    return text


def _read_bytes(text: str) -> int:
    try:
        amount = Quantity(text).nanos
    except QuantityError as error:
        raise NotAllowedError(text, _BYTES) from error
    if amount < 10**9 or amount % 10**9:
        raise NotAllowedError(text, _BYTES)
    return amount // 10**9


TRUTH = Kind(metavar="", read_text=_read_truth, read_document=_read_truth_document)
PATH = kind_of("PATH", _read_path, "a path")
ADDRESS = kind_of("ADDRESS", _read_address, "an IP address")
NODE_NAME = kind_of("NAME", _read_node_name, "a node's name")
RUNTIME = kind_of("RUNTIME", _read_runtime, _RUNTIME)
BYTES = kind_of("BYTES", _read_bytes, _BYTES)
TEXT = kind_of("TEXT", _read_text, "a text")
URL = kind_of("URL", _read_url, "an address")
PATHS = Kind(metavar="PATHS", read_text=_read_paths, read_document=_read_paths, may_be_empty=True)
PORT = whole(0, 65535)
PERIOD = duration(0.001, allowed="a duration of 1ms or more, such as 10s or 1m30s")
