"""How the agent logs: one line for each thing, for people or for programs, without secrets.

All modules log "a constant sentence: key=value" through `logging`; here it becomes a line.
"""

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec
import structlog
from structlog.stdlib import ProcessorFormatter

from podstatus.base.terminal import escape_control_chars

Event = MutableMapping[str, Any]

_KEYS: Final = re.compile(r"(\w+)=%")
_SECRETS: Final = (
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)[\w.~+/=-]+"),
    re.compile(
        r"(?i)(\b\w*(?:token|password|secret|authorization)[\"']?\s*[:=]\s*[\"']?)[^\s\"',;]+"
    ),
    re.compile(r"(://)[^/\s@]+(?=@)"),
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|\Z)", re.DOTALL),
)
_OURS: Final = "podstatus"
LOG_FILE: Final = "podstatus.log"
_MOST_BYTES: Final = 10 * 2**20
_MOST_FILES: Final = 5
"""One that is written to, and those before it."""
_CHANGES: Final = 2
"""The file has at least what changes: it is read when something went wrong."""
_OPEN: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def configure_logs(verbosity: int, log_format: str, stream: TextIO | None = None) -> None:
    """Send all logs to a stream, standard error if none is given."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_formatter(log_format))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_level(verbosity, others=True))
    logging.getLogger(_OURS).setLevel(_level(verbosity, others=False))


@contextmanager
def logged_to(folder: Path, verbosity: int, log_format: str) -> Iterator[None]:
    """Keep all logs in a file of this folder as well; what grows too long is put aside."""
    root, ours = logging.getLogger(), logging.getLogger(_OURS)
    before, levels = root.handlers[:], (root.level, ours.level)
    file = _LogFile(
        folder / LOG_FILE, maxBytes=_MOST_BYTES, backupCount=_MOST_FILES - 1, delay=True
    )
    file.setFormatter(_formatter(log_format))
    shown = _Shown(verbosity)
    for handler in before:
        handler.addFilter(shown)
    root.addHandler(file)
    root.setLevel(_level(max(verbosity, _CHANGES), others=True))
    ours.setLevel(_level(max(verbosity, _CHANGES), others=False))
    try:
        yield
    finally:
        root.removeHandler(file)
        with suppress(OSError):  # a full disk: standard error has the lines
            file.close()
        for handler in before:
            handler.removeFilter(shown)
        root.setLevel(levels[0])
        ours.setLevel(levels[1])


class _Shown(logging.Filter):
    """Lets pass what is to be seen at a verbosity, though more is kept."""

    def __init__(self, verbosity: int) -> None:
        super().__init__()
        self._verbosity = verbosity

    def filter(self, record: logging.LogRecord) -> bool:
        others = record.name.partition(".")[0] != _OURS
        return record.levelno >= _level(self._verbosity, others=others)


class _LogFile(RotatingFileHandler):
    """A file that only its owner may read, and that no link leads away from."""

    def _open(self) -> TextIO:  # type: ignore[override]
        descriptor = os.open(self.baseFilename, _OPEN, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - of logging
        """Go on: a full disk must not end an agent, and standard error has the line."""


def _level(verbosity: int, *, others: bool) -> int:
    """Upstream's numbers: 0 is what a person must see, 2 the default, 4 for finding faults."""
    if verbosity >= (6 if others else 4):
        return logging.DEBUG
    return logging.INFO if verbosity >= 1 and not others else logging.WARNING


def _formatter(log_format: str) -> ProcessorFormatter:
    is_json = log_format == "json"
    return ProcessorFormatter(
        pass_foreign_args=True,
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            _with_fields if is_json else _as_told,
            structlog.processors.format_exc_info,
            ProcessorFormatter.remove_processors_meta,
            _without_secrets,
            _json_line if is_json else _text_line,
        ],
    )


def _as_told(_logger: Any, _method: str, event: Event) -> Event:
    return event


def _with_fields(_logger: Any, _method: str, event: Event) -> Event:
    """The values of a message as fields of their own, by the keys in front of them."""
    record: logging.LogRecord | None = event.get("_record")
    args: object = event.get("positional_args")
    if record is None or not isinstance(record.msg, str) or not isinstance(args, tuple):
        return event
    keys = _KEYS.findall(record.msg)
    if keys and len(keys) == len(args) and len(set(keys)) == len(keys):
        event["event"] = record.msg.partition(":")[0]
        event["fields"] = dict(zip(keys, map(_plain, args), strict=True))
    return event


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float) or value is None else str(value)


def _without_secrets(_logger: Any, _method: str, event: Event) -> Event:
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = masked(value)
    fields: Mapping[str, object] = event.get("fields", {})
    event["fields"] = {
        key: masked(f"{key}={value}").partition("=")[2] if isinstance(value, str) else value
        for key, value in fields.items()
    }
    return event


def masked(text: str) -> str:
    """A text without what looks like a secret."""
    for pattern in _SECRETS:
        text = pattern.sub(r"\1…", text)
    return text


def _text_line(_logger: Any, _method: str, event: Event) -> str:
    trace = f"\n{event['exception']}" if event.get("exception") else ""
    level, name = event["level"].upper(), event["logger"].removeprefix(f"{_OURS}.")
    # What a pod says must not pass for a line of ours.
    told = event["event"].replace("\n", "\\n")
    return escape_control_chars(f"{event['timestamp']} {level:<7} {name}: {told}{trace}")


def _json_line(_logger: Any, _method: str, event: Event) -> str:
    line = {
        "time": event["timestamp"],
        "level": event["level"],
        "logger": event["logger"],
        "message": event["event"],
    }
    for key, value in event["fields"].items():
        line[f"{key}_" if key in line else key] = value
    if event.get("exception"):
        line["exception"] = event["exception"]
    return msgspec.json.encode(line).decode()
