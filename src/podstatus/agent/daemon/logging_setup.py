"""Log output of the agent: one line per record, as text or JSON, with secrets redacted.

Modules log "constant sentence: key=%s" with the standard `logging`; this module formats it.
"""

import faulthandler
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

from podstatus.base.control_chars import escape_control_chars

EventDict = MutableMapping[str, Any]

_STDERR: Final = 2
_KEY_PATTERN: Final = re.compile(r"(\w+)=%")
_SECRET_PATTERNS: Final = (
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)[\w.~+/=-]+"),
    re.compile(
        r"(?i)(\b\w*(?:token|password|secret|authorization)[\"']?\s*[:=]\s*[\"']?)[^\s\"',;]+"
    ),
    re.compile(r"(://)[^/\s@\"']+(?=@)"),
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|\Z)", re.DOTALL),
)
_ROOT_LOGGER: Final = "podstatus"
LOG_FILE: Final = "podstatus.log"
_MAX_BYTES: Final = 10 * 2**20
_MAX_FILES: Final = 5
"""The current file and its rotated predecessors."""
_MIN_FILE_VERBOSITY: Final = 2
"""The file logs at least changes, whatever `-v` is: it is read after a failure."""
_OPEN_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def configure_logging(verbosity: int, log_format: str, stream: TextIO | None = None) -> None:
    """Send all logs to `stream`, by default to standard error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_formatter(log_format))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_log_level(verbosity, third_party=True))
    logging.getLogger(_ROOT_LOGGER).setLevel(_log_level(verbosity, third_party=False))


def dump_stacks_on_abort() -> None:
    """Write the stacks of all threads to standard error when the process dies of SIGABRT.

    A supervisor and systemd's watchdog end a process that hangs by this signal. The stacks have
    names of files and functions, and no values. They are written by a handler in C, whatever the
    interpreter does meanwhile.
    """
    faulthandler.enable(file=_STDERR, all_threads=True)


@contextmanager
def log_to_file(folder: Path, verbosity: int, log_format: str) -> Iterator[None]:
    """Within the context, also log to a rotated file in `folder`."""
    root, ours = logging.getLogger(), logging.getLogger(_ROOT_LOGGER)
    before, levels = root.handlers[:], (root.level, ours.level)
    file = _LogFile(folder / LOG_FILE, maxBytes=_MAX_BYTES, backupCount=_MAX_FILES - 1, delay=True)
    file.setFormatter(_formatter(log_format))
    verbosity_filter = _VerbosityFilter(verbosity)
    for handler in before:
        handler.addFilter(verbosity_filter)
    root.addHandler(file)
    root.setLevel(_log_level(max(verbosity, _MIN_FILE_VERBOSITY), third_party=True))
    ours.setLevel(_log_level(max(verbosity, _MIN_FILE_VERBOSITY), third_party=False))
    try:
        yield
    finally:
        root.removeHandler(file)
        with suppress(OSError):  # a full disk: standard error has the lines
            file.close()
        for handler in before:
            handler.removeFilter(verbosity_filter)
        root.setLevel(levels[0])
        ours.setLevel(levels[1])


class _VerbosityFilter(logging.Filter):
    """Limits a handler to a verbosity below that of the loggers."""

    def __init__(self, verbosity: int) -> None:
        super().__init__()
        self._verbosity = verbosity

    def filter(self, record: logging.LogRecord) -> bool:
        is_third_party = record.name.partition(".")[0] != _ROOT_LOGGER
        return record.levelno >= _log_level(self._verbosity, third_party=is_third_party)


class _LogFile(RotatingFileHandler):
    """A log file with mode 0600; symbolic links are not followed."""

    def _open(self) -> TextIO:  # type: ignore[override]
        descriptor = os.open(self.baseFilename, _OPEN_FLAGS, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - of logging
        """Ignore the error: a full disk must not stop the agent, and stderr has the line."""


def _log_level(verbosity: int, *, third_party: bool) -> int:
    """Map a verbosity to a level. Upstream's convention: 0 always, 2 default, 4 debug."""
    if verbosity >= (6 if third_party else 4):
        return logging.DEBUG
    return logging.INFO if verbosity >= 1 and not third_party else logging.WARNING


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
            *([_extract_fields] if is_json else []),
            structlog.processors.format_exc_info,
            ProcessorFormatter.remove_processors_meta,
            _redact_secrets,
            _json_line if is_json else _text_line,
        ],
    )


def _extract_fields(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Turn the `key=%s` arguments of a message into separate fields."""
    record: logging.LogRecord | None = event.get("_record")
    args: object = event.get("positional_args")
    if record is None or not isinstance(record.msg, str) or not isinstance(args, tuple):
        return event
    keys = _KEY_PATTERN.findall(record.msg)
    if keys and len(keys) == len(args) and len(set(keys)) == len(keys):
        event["event"] = record.msg.partition(":")[0]
        event["fields"] = dict(zip(keys, map(_to_json_value, args), strict=True))
    return event


def _to_json_value(value: object) -> object:
    return value if isinstance(value, bool | int | float) or value is None else str(value)


def _redact_secrets(_logger: Any, _method: str, event: EventDict) -> EventDict:
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = redact(value)
    fields: Mapping[str, object] = event.get("fields", {})
    event["fields"] = {
        key: redact(f"{key}={value}").partition("=")[2] if isinstance(value, str) else value
        for key, value in fields.items()
    }
    return event


def redact(text: str) -> str:
    """Return the text with everything that looks like a secret replaced by `…`."""
    for pattern in _SECRET_PATTERNS:
        text = pattern.sub(r"\1…", text)
    return text


def _text_line(_logger: Any, _method: str, event: EventDict) -> str:
    trace = f"\n{event['exception']}" if event.get("exception") else ""
    level, name = event["level"].upper(), event["logger"].removeprefix(f"{_ROOT_LOGGER}.")
    # Escape newlines, so that text from a pod cannot forge a log line.
    message = event["event"].replace("\n", "\\n")
    return escape_control_chars(f"{event['timestamp']} {level:<7} {name}: {message}{trace}")


def _json_line(_logger: Any, _method: str, event: EventDict) -> str:
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
