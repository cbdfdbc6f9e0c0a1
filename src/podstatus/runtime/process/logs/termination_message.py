"""The termination message of a container: its message file, or the end of its log.

The container writes the file and may be hostile: it may be a link, a pipe, a folder, huge, or
binary.

Upstream: getTerminationMessage and convertToKubeContainerStatus,
kuberuntime/kuberuntime_container.go v1.36.4.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from podstatus.runtime.process.logs.cri_format import LogFilter
from podstatus.runtime.process.logs.files import close_all, open_log, seek_to_tail
from podstatus.runtime.process.records.layout import ContainerFolder
from podstatus.runtime.process.records.models import ExitRecord, LaunchRecord
from podstatus.runtime.streams import LogOptions

MAX_MESSAGE_BYTES = 4096
MAX_LOG_LINES, MAX_LOG_BYTES = 80, 2048
"""Upstream's, in container/runtime.go: only the end of longer text is used."""

_SURROGATES = re.compile("[\udc80-\udcff]")
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


def termination_message(directory: ContainerFolder, launch: LaunchRecord, exit: ExitRecord) -> str:
    """Return the message of an ended attempt: its start error and its own message."""
    # A container that was not started has no log.
    fallback = launch.message_fallback and exit.exit_code != 0 and exit.reason != "StartError"
    message = _message_from_file(directory, launch.message_path) if launch.message_path else ""
    if not message and fallback:
        message = message_from_log(directory.log)
    return ": ".join(part for part in (exit.message, message) if part)


def message_from_own_file(path: Path) -> str:
    """Return the end of a message file in a private folder; empty if there is none.

    Raises OSError, also if the container replaced the file.
    """
    try:
        descriptor = os.open(path, _READ_FLAGS)
    except FileNotFoundError:
        return ""
    try:
        return _decode(_read_tail(descriptor))
    finally:
        os.close(descriptor)


def _message_from_file(directory: ContainerFolder, path: str) -> str:
    try:
        return _decode(_message_bytes(directory, Path(path)))
    except OSError as error:
        return f"Error on reading termination log {path}: {error.strerror}"


def _message_bytes(directory: ContainerFolder, path: Path) -> bytes:
    if path.parent == directory.path:
        return _read(directory, path) or b""
    # Without isolation, all attempts of a container share one file: save it before the next writes.
    message = _read(directory, directory.message)
    if message is None:
        message = _read(directory, path) or b""
        with suppress(OSError):  # on a full disk it is read again next time
            _save(directory.message, message)
    return message


def _read(directory: ContainerFolder, path: Path) -> bytes | None:
    """Return the end of the file; None if it does not exist."""
    try:
        with _open_message(directory, path) as descriptor:
            return _read_tail(descriptor)
    except FileNotFoundError:
        return None


def _save(path: Path, message: bytes) -> None:
    temporary = path.with_name(f"{path.name}.new")
    descriptor = os.open(temporary, _WRITE_FLAGS, 0o600)
    with os.fdopen(descriptor, "wb") as writer:
        writer.write(message)
    temporary.replace(path)


def _read_tail(fd: int) -> bytes:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "not a regular file")
    if status.st_nlink > 1:
        # A hard link to a foreign file would reveal what the container itself may not read.
        raise OSError(0, "the file has more than one hard link")
    return os.pread(fd, MAX_MESSAGE_BYTES, max(0, status.st_size - MAX_MESSAGE_BYTES))


@contextmanager
def _open_message(directory: ContainerFolder, path: Path) -> Iterator[int]:
    # The attempt's own folder is private, so the path to it is safe, links or not.
    is_private = path.parent == directory.path
    descriptor = os.open(path, _READ_FLAGS) if is_private else _open_without_links(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_without_links(path: Path) -> int:
    """Open a file through folders that a container could have replaced by links."""
    folder = os.open("/", _FOLDER_FLAGS)
    try:
        for name in path.parts[1:-1]:
            inner = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(path.name, _READ_FLAGS, dir_fd=folder)
    finally:
        os.close(folder)


def message_from_log(log: Path) -> str:
    """Return the end of a log, or why it cannot be read."""
    try:
        files = open_log(log)
    except OSError as error:
        return f"Error on reading termination message from logs: {error.strerror}"
    try:
        seek_to_tail(files, MAX_LOG_LINES, None)
        log_filter, end = LogFilter(LogOptions()), b""
        for file in files:
            while (entries := file.read()) is not None:
                end = (end + log_filter.add(entries))[-MAX_LOG_BYTES:]
            end = (end + log_filter.add(file.read_partial()))[-MAX_LOG_BYTES:]
        return _decode((end + log_filter.end())[-MAX_LOG_BYTES:])
    finally:
        close_all(files)


def _decode(data: bytes) -> str:
    """Decode as Go encodes JSON: one replacement character for every invalid byte."""
    return _SURROGATES.sub("\ufffd", data.decode(errors="surrogateescape"))
