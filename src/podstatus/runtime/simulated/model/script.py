"""Scripts of simulated containers, parsed from the annotations of their pods.

    podstatus.dev/simulate: "run=3s, exit=1"                     every container of the pod
    simulate.podstatus.dev/app: "run=2s, exit=42; run=forever"   the container `app`

Words are separated by commas, attempts by semicolons; the last attempt repeats. What is not said
has a default: a container starts at once, runs until it is asked to end, then ends at once with
exit code 0. docs/runtimes.md has every word with examples.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.runtime.simulated.model.durations import parse_duration
from podstatus.runtime.simulated.model.probe_timeline import Timeline, TimelineError, parse_timeline

_MAX_QUOTED = 3
"""Of mistakes of one kind so many are quoted; the text may be one long mistake."""


class ParseErrors:
    """Mistakes by what would be right: that is said once."""

    def __init__(self) -> None:
        self._by_expectation: dict[str, list[str]] = {}

    def add(self, quoted: str, expected: str) -> None:
        """Take note of a mistake, and of what is allowed."""
        self._by_expectation.setdefault(expected, []).append(quoted)

    def __bool__(self) -> bool:
        return bool(self._by_expectation)

    def __str__(self) -> str:
        told = [f"{_quote_list(quoted)}; {right}" for right, quoted in self._by_expectation.items()]
        if len(told) == 1:
            return told[0]
        return ". ".join(f"({number}) {text}" for number, text in enumerate(told, 1))


def _quote_list(quoted: list[str]) -> str:
    more = len(quoted) - _MAX_QUOTED
    return ", ".join(quoted[:_MAX_QUOTED]) + (f" and {more} more" if more > 0 else "")


POD_ANNOTATION = "podstatus.dev/simulate"
CONTAINER_PREFIX = "simulate.podstatus.dev/"
"""In front of a container's name. A name has at most 63 characters and no more fit behind the
slash, so nothing else can stand there."""

START_ERROR = "StartError"
"""The failure of an attempt that was made; others leave nothing behind."""
OOM = "oom"
KILLED_EXIT_CODE = 137
NEVER = None
"""A duration that does not end."""

_PAIR = r'\s*(?P<word>[a-z-]+)\s*=\s*(?P<value>"[^"]*"|[^\s,;"]+)\s*(?:[,;]|\Z)'
_UNPARSED = r'(?P<unread>[^,;"]*)[,;]|.+'
"""What is passed over to go on after a mistake; all that is left from a quotation mark on, as
nobody knows where that text ends."""
_TOKEN = re.compile(f"{_PAIR}|{_UNPARSED}", re.DOTALL)
_PAIRS_EXPECTED = (
    "pairs such as run=3s are expected, commas between them, semicolons between attempts"
)
_REASON = re.compile(r"[A-Z][A-Za-z]*")
_MAX_EXIT_CODE = 255

_FieldParser = Callable[[str], dict[str, Any] | None]
"""From the value of a word to fields of a script; None if it cannot be read."""


class ScriptError(ValueError):
    """A script cannot be read; the message quotes the mistakes and says what is allowed."""


class Script(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one attempt at running a container does; durations in nanoseconds."""

    start: int | None = 0
    """How long starting it takes."""
    fail: str = ""
    """Why it cannot be started, in one word."""
    post_start: int | None = 0
    """How long its postStart hook takes."""
    post_start_exit: int = 0
    run: int | None = NEVER
    """How long it runs by itself."""
    exit: int = 0
    oom: bool = False
    """Whether it ends by itself for want of memory."""
    message: str = ""
    """Its last words."""
    pre_stop: int | None = 0
    """How long its preStop hook takes."""
    pre_stop_exit: int = 0
    stop: int | None = 0
    """How long it goes on after it was asked to end."""
    stop_exit: int = 0
    kill: int | None = 0
    """How long it goes on after it was made to end."""
    resize: int | None = 0
    """How long it takes to give it other resources."""
    resize_fails: bool = False
    ready: Timeline = Timeline()
    started: Timeline = Timeline()
    alive: Timeline = Timeline()
    stop_ready: Timeline | None = None
    """The readiness from the moment on it was asked to end, if that changes it."""
    cpu_cores: float | None = None
    memory_bytes: int | None = None


def script_for(pod: Pod, container: str, attempt: int) -> Script:
    """What this attempt at a container of the pod does; the first one is 0. Raises ScriptError."""
    annotations = pod.metadata.annotations or {}
    stray = _unknown_annotations(pod)
    found = [str(stray)] if stray else []
    scripts: tuple[Script, ...] = (Script(),)
    for name in (CONTAINER_PREFIX + container, POD_ANNOTATION):
        if name in annotations:
            try:
                scripts = parse_script(annotations[name])
            except ScriptError as error:
                found.append(f"annotation {name}: {error}")
            break
    if found:
        raise ScriptError("; ".join(found))
    return scripts[min(attempt, len(scripts) - 1)]


def _unknown_annotations(pod: Pod) -> ParseErrors:
    """The annotations that are about no container of the pod."""
    mistakes = ParseErrors()
    spec = pod.spec
    kinds = (spec.init_containers, spec.containers, spec.ephemeral_containers)
    names = [container.name for containers in kinds for container in containers or ()]
    for annotation in sorted(pod.metadata.annotations or {}):
        name = annotation.removeprefix(CONTAINER_PREFIX)
        if name != annotation and name not in names:
            told = f"annotation {annotation} names no container of the pod"
            mistakes.add(told, f"containers are {', '.join(names)}")
    return mistakes


def parse_script(text: str) -> tuple[Script, ...]:
    """The attempts that a text describes, at least one. Raises ScriptError with all mistakes."""
    attempts: list[dict[str, Any]] = [{}]
    mistakes = ParseErrors()
    for piece in _TOKEN.finditer(text.strip()):
        word, value, unread = piece.group("word", "value", "unread")
        if word is not None:
            _add_field(attempts[-1], word, value.strip('"'), mistakes)
        else:
            quoted = _abbreviate(unread or "") or _abbreviate(piece[0])
            mistakes.add(f"cannot read {quoted!r}", _PAIRS_EXPECTED)
        if piece[0].endswith(";"):
            attempts.append({})
    if mistakes:
        raise ScriptError(str(mistakes))
    return tuple(Script(**fields) for fields in attempts)


def _add_field(fields: dict[str, Any], word: str, value: str, errors: ParseErrors) -> None:
    if word not in FIELD_PARSERS:
        errors.add(
            f"there is no word {_abbreviate(word)!r}", f"words are {', '.join(FIELD_PARSERS)}"
        )
        return
    found = FIELD_PARSERS[word](value)
    if found is None:
        errors.add(f"{word}={_abbreviate(value)} cannot be read", f"{_EXPECTED[word]} is expected")
    elif any(name in fields for name in found):
        errors.add(f"{word} is said twice", "a semicolon begins another attempt")
    else:
        fields |= found


def _duration(field: str, endless: str = "") -> _FieldParser:
    """Reads a duration, or the word for one that does not end."""

    def read(value: str) -> dict[str, Any] | None:
        if endless and value == endless:
            return {field: NEVER}
        nanos = parse_duration(value)
        return {field: nanos} if nanos is not None else None

    return read


def _code(field: str) -> _FieldParser:
    def read(value: str) -> dict[str, Any] | None:
        fits = value.isascii() and value.isdigit() and int(value) <= _MAX_EXIT_CODE
        return {field: int(value)} if fits else None

    return read


def _exit(value: str) -> dict[str, Any] | None:
    return {"exit": KILLED_EXIT_CODE, "oom": True} if value == OOM else _code("exit")(value)


def _fail(value: str) -> dict[str, Any] | None:
    return {"fail": value} if _REASON.fullmatch(value) else None


def _message(value: str) -> dict[str, Any] | None:
    return {"message": value}


def _resize(value: str) -> dict[str, Any] | None:
    if value == "fail":
        return {"resize": 0, "resize_fails": True}
    return _duration("resize", "never")(value)


def _timeline(field: str) -> _FieldParser:
    def read(value: str) -> dict[str, Any] | None:
        try:
            return {field: parse_timeline(value)}
        except TimelineError:
            return None

    return read


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


FIELD_PARSERS: Mapping[str, _FieldParser] = {
    "start": _duration("start", "never"),
    "fail": _fail,
    "post-start": _duration("post_start", "never"),
    "post-start-exit": _code("post_start_exit"),
    "run": _duration("run", "forever"),
    "exit": _exit,
    "message": _message,
    "pre-stop": _duration("pre_stop", "never"),
    "pre-stop-exit": _code("pre_stop_exit"),
    "stop": _duration("stop", "never"),
    "stop-exit": _code("stop_exit"),
    "kill": _duration("kill", "never"),
    "resize": _resize,
    "ready": _timeline("ready"),
    "stop-ready": _timeline("stop_ready"),
    "started": _timeline("started"),
    "alive": _timeline("alive"),
    "cpu": _cpu,
    "memory": _memory,
}
"""How each word is read."""

_DURATION_EXPECTED = "a length such as 500ms, 3s, 2m or 1h"
_CODE_EXPECTED = "a number from 0 to 255"
_STEPS_EXPECTED = (
    "steps such as -4s+5s-5s+ (+ passes, - fails, ? says nothing; * at the end repeats)"
)
_EXPECTED: Mapping[str, str] = {
    "start": f"{_DURATION_EXPECTED}, or never,",
    "fail": "a reason such as StartError or ErrImageNeverPull",
    "post-start": f"{_DURATION_EXPECTED}, or never,",
    "post-start-exit": _CODE_EXPECTED,
    "run": f"{_DURATION_EXPECTED}, or forever,",
    "exit": f"{_CODE_EXPECTED}, or oom,",
    "message": "a text",
    "pre-stop": f"{_DURATION_EXPECTED}, or never,",
    "pre-stop-exit": _CODE_EXPECTED,
    "stop": f"{_DURATION_EXPECTED}, or never,",
    "stop-exit": _CODE_EXPECTED,
    "kill": f"{_DURATION_EXPECTED}, or never,",
    "resize": f"{_DURATION_EXPECTED}, or never, or fail,",
    "ready": _STEPS_EXPECTED,
    "stop-ready": _STEPS_EXPECTED,
    "started": _STEPS_EXPECTED,
    "alive": _STEPS_EXPECTED,
    "cpu": "an amount of processors such as 250m or 2",
    "memory": "an amount of bytes such as 64Mi",
}
