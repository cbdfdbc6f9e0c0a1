"""Scripts of simulated containers, parsed from the annotations of their pods.

    podstatus.dev/simulate: "run=3s, exit=1"                     every container of the pod
    simulate.podstatus.dev/app: "run=2s, exit=42; run=forever"   the container `app`

Pairs are separated by commas, attempts by semicolons; the last attempt repeats. By default a
container starts at once, runs until it is stopped, and then exits at once with code 0.
docs/reference/simulated-runtime.md documents every key with examples.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.runtime.simulated.model.probe_timeline import (
    Timeline,
    TimelineError,
    parse_nanos,
    parse_timeline,
)

_MAX_QUOTED = 3
"""Errors of one kind that are quoted; the text may be one long error."""


class ParseErrors:
    """Errors grouped by what is expected instead, so that each hint appears once."""

    def __init__(self) -> None:
        self._by_expectation: dict[str, list[str]] = {}

    def add(self, quoted: str, expected: str) -> None:
        """Add an error and a description of what is valid."""
        self._by_expectation.setdefault(expected, []).append(quoted)

    def __bool__(self) -> bool:
        return bool(self._by_expectation)

    def __str__(self) -> str:
        messages = [
            f"{_quote_list(quoted)}; {expected}"
            for expected, quoted in self._by_expectation.items()
        ]
        if len(messages) == 1:
            return messages[0]
        return ". ".join(f"({number}) {text}" for number, text in enumerate(messages, 1))


def _quote_list(quoted: list[str]) -> str:
    more = len(quoted) - _MAX_QUOTED
    return ", ".join(quoted[:_MAX_QUOTED]) + (f" and {more} more" if more > 0 else "")


POD_ANNOTATION = "podstatus.dev/simulate"
CONTAINER_PREFIX = "simulate.podstatus.dev/"
"""Prefix of a container's name. Both a container name and the name part of an annotation key have
at most 63 characters, so nothing else fits.
"""

START_ERROR = "StartError"
"""The only failure that leaves an attempt behind."""
OOM = "oom"
KILLED_EXIT_CODE = 137
NEVER = None
"""A duration that does not end."""

_PAIR = r'\s*(?P<key>[a-z-]+)\s*=\s*(?P<value>"[^"]*"|[^\s,;"]+)\s*(?:[,;]|\Z)'
_UNPARSED = r'(?P<unparsed>[^,;"]*)[,;]|.+'
"""Skipped text after an error. From a quotation mark on, that is the rest of the text, as the end
of the quoted value is unknown.
"""
_TOKEN = re.compile(f"{_PAIR}|{_UNPARSED}", re.DOTALL)
_PAIRS_EXPECTED = (
    "expected pairs such as run=3s, separated by commas, and semicolons between attempts"
)
_REASON = re.compile(r"[A-Z][A-Za-z]*")
_MAX_EXIT_CODE = 255

_DURATION_EXPECTED = "a duration such as 500ms, 3s, 2m or 1h"
_CODE_EXPECTED = "a number from 0 to 255"
_STEPS_EXPECTED = (
    "steps such as -4s+5s-5s+ (+ passes, - fails, ? has no result yet; * at the end repeats)"
)


class _Field(msgspec.Struct, frozen=True):
    """How the value of a key is parsed."""

    parse: Callable[[str], dict[str, Any] | None]
    """From a value to fields of a script; None if the value is invalid."""
    expected: str
    """Describes valid values."""


class ScriptError(ValueError):
    """The script is invalid; the message quotes the errors and says what is expected."""


class Script(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Behaviour of one attempt to run a container; durations in nanoseconds."""

    start: int | None = 0
    """How long the start takes."""
    fail: str = ""
    """Reason why it cannot be started; empty if it can."""
    post_start: int | None = 0
    """How long the postStart hook takes."""
    post_start_exit: int = 0
    run: int | None = NEVER
    """How long it runs unless it is stopped."""
    exit: int = 0
    oom: bool = False
    """Whether it ends by itself as OOM killed."""
    message: str = ""
    """Termination message."""
    pre_stop: int | None = 0
    """How long the preStop hook takes."""
    pre_stop_exit: int = 0
    stop: int | None = 0
    """How long it runs on after the stop signal."""
    stop_exit: int = 0
    kill: int | None = 0
    """How long it runs on after it was killed."""
    resize: int | None = 0
    """How long a resize takes."""
    resize_fails: bool = False
    ready: Timeline = Timeline()
    started: Timeline = Timeline()
    alive: Timeline = Timeline()
    stop_ready: Timeline | None = None
    """Readiness from the stop signal on; None: unchanged."""
    cpu_cores: float | None = None
    memory_bytes: int | None = None


def script_for(pod: Pod, container: str, attempt: int) -> Script:
    """Return the script of attempt number `attempt` (from 0). Raises ScriptError."""
    annotations = pod.metadata.annotations or {}
    unknown = _unknown_annotations(pod)
    errors = [str(unknown)] if unknown else []
    scripts: tuple[Script, ...] = (Script(),)
    for name in (CONTAINER_PREFIX + container, POD_ANNOTATION):
        if name in annotations:
            try:
                scripts = parse_script(annotations[name])
            except ScriptError as error:
                errors.append(f"annotation {name}: {error}")
            break
    if errors:
        raise ScriptError("; ".join(errors))
    return scripts[min(attempt, len(scripts) - 1)]


def _unknown_annotations(pod: Pod) -> ParseErrors:
    """Return an error for each script annotation that names no container of the pod."""
    errors = ParseErrors()
    spec = pod.spec
    kinds = (spec.init_containers, spec.containers, spec.ephemeral_containers)
    names = [container.name for containers in kinds for container in containers or ()]
    for annotation in sorted(pod.metadata.annotations or {}):
        name = annotation.removeprefix(CONTAINER_PREFIX)
        if name != annotation and name not in names:
            message = f"annotation {annotation} names no container of the pod"
            errors.add(message, f"containers are {', '.join(names)}")
    return errors


def parse_script(text: str) -> tuple[Script, ...]:
    """Parse the attempts of a script, at least one. Raises ScriptError with all errors."""
    attempts: list[dict[str, Any]] = [{}]
    errors = ParseErrors()
    for piece in _TOKEN.finditer(text.strip()):
        key, value, unparsed = piece.group("key", "value", "unparsed")
        if key is not None:
            _add_field(attempts[-1], key, value.strip('"'), errors)
        else:
            quoted = _abbreviate(unparsed or "") or _abbreviate(piece[0])
            errors.add(f"cannot parse {quoted!r}", _PAIRS_EXPECTED)
        if piece[0].endswith(";"):
            attempts.append({})
    if errors:
        raise ScriptError(str(errors))
    return tuple(Script(**fields) for fields in attempts)


def _add_field(fields: dict[str, Any], key: str, value: str, errors: ParseErrors) -> None:
    field = FIELDS.get(key)
    if field is None:
        errors.add(f"unknown key {_abbreviate(key)!r}", f"valid keys are {', '.join(FIELDS)}")
        return
    parsed = field.parse(value)
    if parsed is None:
        errors.add(f"invalid value {key}={_abbreviate(value)}", f"expected {field.expected}")
    elif any(name in fields for name in parsed):
        errors.add(f"{key} occurs twice", "use a semicolon to begin another attempt")
    else:
        fields |= parsed


def _duration(field: str, endless: str) -> _Field:
    """A duration, or the keyword `endless`."""

    def read(value: str) -> dict[str, Any] | None:
        if value == endless:
            return {field: NEVER}
        nanos = parse_nanos(value)
        return {field: nanos} if nanos is not None else None

    return _Field(read, f"{_DURATION_EXPECTED}, or {endless}")


def _code(field: str) -> _Field:
    def read(value: str) -> dict[str, Any] | None:
        fits = value.isascii() and value.isdigit() and int(value) <= _MAX_EXIT_CODE
        return {field: int(value)} if fits else None

    return _Field(read, _CODE_EXPECTED)


def _exit(value: str) -> dict[str, Any] | None:
    return {"exit": KILLED_EXIT_CODE, "oom": True} if value == OOM else _code("exit").parse(value)


def _fail(value: str) -> dict[str, Any] | None:
    return {"fail": value} if _REASON.fullmatch(value) else None


def _resize(value: str) -> dict[str, Any] | None:
    if value == "fail":
        return {"resize": 0, "resize_fails": True}
    return _duration("resize", "never").parse(value)


def _timeline(field: str) -> _Field:
    def read(value: str) -> dict[str, Any] | None:
        try:
            return {field: parse_timeline(value)}
        except TimelineError:
            return None

    return _Field(read, _STEPS_EXPECTED)


def _cpu(value: str) -> dict[str, Any] | None:
    nanos = _quantity_nanos(value)
    return {"cpu_cores": nanos / 1e9} if nanos is not None else None


def _memory(value: str) -> dict[str, Any] | None:
    nanos = _quantity_nanos(value)
    return {"memory_bytes": nanos // 1_000_000_000} if nanos is not None else None


def _quantity_nanos(value: str) -> int | None:
    try:
        nanos = Quantity.parse(value).nanos
    except QuantityError:
        return None
    return nanos if nanos >= 0 else None


def _abbreviate(text: str) -> str:
    return text.strip()[:40]


FIELDS: Mapping[str, _Field] = {
    "start": _duration("start", "never"),
    "fail": _Field(_fail, "a reason such as StartError or ErrImageNeverPull"),
    "post-start": _duration("post_start", "never"),
    "post-start-exit": _code("post_start_exit"),
    "run": _duration("run", "forever"),
    "exit": _Field(_exit, f"{_CODE_EXPECTED}, or oom"),
    "message": _Field(lambda value: {"message": value}, "a text"),
    "pre-stop": _duration("pre_stop", "never"),
    "pre-stop-exit": _code("pre_stop_exit"),
    "stop": _duration("stop", "never"),
    "stop-exit": _code("stop_exit"),
    "kill": _duration("kill", "never"),
    "resize": _Field(_resize, f"{_DURATION_EXPECTED}, or never, or fail"),
    "ready": _timeline("ready"),
    "stop-ready": _timeline("stop_ready"),
    "started": _timeline("started"),
    "alive": _timeline("alive"),
    "cpu": _Field(_cpu, "a CPU quantity such as 250m or 2"),
    "memory": _Field(_memory, "a memory quantity such as 64Mi"),
}
"""All keys of a script."""
