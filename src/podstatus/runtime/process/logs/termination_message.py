"""The last words of a container: its message file, or the end of its log.

The file was written by the container, which may be hostile: it may be a link, a pipe, a folder,
huge, and need not be text.

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
"""Upstream's, in container/runtime.go: of more, the end is taken."""

_SURROGATES = re.compile("[\udc80-\udcff]")
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


def termination_message(directory: ContainerFolder, launch: LaunchRecord, exit: ExitRecord) -> str:
    """What is shown of an attempt that has ended: why it could not run, what it left to say."""
    # What could not even be started has written no log.
    fallback = launch.message_fallback and exit.exit_code != 0 and exit.reason != "StartError"
    words = _message_from_file(directory, launch.message_path) if launch.message_path else ""
    if not words and fallback:
        words = _message_from_log(directory)
    return ": ".join(part for part in (exit.message, words) if part)


def _message_from_file(directory: ContainerFolder, path: str) -> str:
    try:
        return _decode(_message_bytes(directory, Path(path)))
    except OSError as error:
        return f"Error on reading termination log {path}: {error.strerror}"


def _message_bytes(directory: ContainerFolder, path: Path) -> bytes:
    if path.parent == directory.path:
        return _read(directory, path) or b""
    # Outside there is one file for all attempts of a container: the next one writes to it, too.
    words = _read(directory, directory.message)
    if words is None:
        words = _read(directory, path) or b""
        with suppress(OSError):  # a full disk: it is read again
            _save(directory.message, words)
    return words


def _read(directory: ContainerFolder, path: Path) -> bytes | None:
    """None if there is none."""
    try:
        with _open_message(directory, path) as opened:
            return _read_tail(opened)
    except FileNotFoundError:
        return None


def _save(path: Path, message: bytes) -> None:
    new = path.with_name(f"{path.name}.new")
    descriptor = os.open(new, _WRITE_FLAGS, 0o600)
    with os.fdopen(descriptor, "wb") as writer:
        writer.write(message)
    new.replace(path)


def _read_tail(fd: int) -> bytes:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "not a regular file")
    if status.st_nlink > 1:
        # A second name for somebody else's file shows what the container itself may not read.
        raise OSError(0, "the file has more than one name")
    return os.pread(fd, MAX_MESSAGE_BYTES, max(0, status.st_size - MAX_MESSAGE_BYTES))


@contextmanager
def _open_message(directory: ContainerFolder, path: Path) -> Iterator[int]:
    # A folder that is ours alone is reached by a way that is ours, links or not.
    ours = path.parent == directory.path
    opened = os.open(path, _READ_FLAGS) if ours else _open_without_links(path)
    try:
        yield opened
    finally:
        os.close(opened)


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


def _message_from_log(directory: ContainerFolder) -> str:
    try:
        files = open_log(directory.log)
    except OSError as error:
        return f"Error on reading termination message from logs: {error.strerror}"
    try:
        seek_to_tail(files, MAX_LOG_LINES, None)
        chosen, end = LogFilter(LogOptions()), b""
        for file in files:
            while (entries := file.read()) is not None:
                end = (end + chosen.add(entries))[-MAX_LOG_BYTES:]
            end = (end + chosen.add(file.read_partial()))[-MAX_LOG_BYTES:]
        return _decode((end + chosen.end())[-MAX_LOG_BYTES:])
    finally:
        close_all(files)


def _decode(data: bytes) -> str:
    """As Go writes it into JSON: one mark for every byte that is no text."""
    return _SURROGATES.sub("\ufffd", data.decode(errors="surrogateescape"))
