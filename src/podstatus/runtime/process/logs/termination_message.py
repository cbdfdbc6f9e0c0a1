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

from podstatus.runtime.process.logs.cri_format import ChosenLines
from podstatus.runtime.process.logs.files import close_all, go_to_last, open_log
from podstatus.runtime.process.records.layout import ContainerFolder
from podstatus.runtime.process.records.models import ExitRecord, Launch
from podstatus.runtime.streams import LogOptions

MESSAGE_BYTES = 4096
LOG_LINES, LOG_BYTES = 80, 2048
"""Upstream's, in container/runtime.go: of more, the end is taken."""

_NOT_TEXT = re.compile("[\udc80-\udcff]")
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


def termination_message(place: ContainerFolder, launch: Launch, exit: ExitRecord) -> str:
    """What is shown of an attempt that has ended: why it could not run, what it left to say."""
    # What could not even be started has written no log.
    fallback = launch.message_fallback and exit.exit_code != 0 and exit.reason != "StartError"
    words = _of_file(place, launch.message_path) if launch.message_path else ""
    if not words and fallback:
        words = _end_of_log(place)
    return ": ".join(part for part in (exit.message, words) if part)


def _of_file(place: ContainerFolder, path: str) -> str:
    try:
        return _text(_words(place, Path(path)))
    except OSError as error:
        return f"Error on reading termination log {path}: {error.strerror}"


def _words(place: ContainerFolder, path: Path) -> bytes:
    if path.parent == place.path:
        return _read(place, path) or b""
    # Outside there is one file for all attempts of a container: the next one writes to it, too.
    words = _read(place, place.message)
    if words is None:
        words = _read(place, path) or b""
        with suppress(OSError):  # a full disk: it is read again
            _keep(place.message, words)
    return words


def _read(place: ContainerFolder, path: Path) -> bytes | None:
    """None if there is none."""
    try:
        with _opened(place, path) as opened:
            return _end_of_file(opened)
    except FileNotFoundError:
        return None


def _keep(path: Path, words: bytes) -> None:
    new = path.with_name(f"{path.name}.new")
    descriptor = os.open(new, _NEW, 0o600)
    with os.fdopen(descriptor, "wb") as writer:
        writer.write(words)
    new.replace(path)


def _end_of_file(opened: int) -> bytes:
    status = os.fstat(opened)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "not a regular file")
    if status.st_nlink > 1:
        # A second name for somebody else's file shows what the container itself may not read.
        raise OSError(0, "the file has more than one name")
    return os.pread(opened, MESSAGE_BYTES, max(0, status.st_size - MESSAGE_BYTES))


@contextmanager
def _opened(place: ContainerFolder, path: Path) -> Iterator[int]:
    # A folder that is ours alone is reached by a way that is ours, links or not.
    ours = path.parent == place.path
    opened = os.open(path, _FILE) if ours else _open_step_by_step(path)
    try:
        yield opened
    finally:
        os.close(opened)


def _open_step_by_step(path: Path) -> int:
    """Open a file through folders that a container could have replaced by links."""
    folder = os.open("/", _FOLDER)
    try:
        for name in path.parts[1:-1]:
            inner = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(path.name, _FILE, dir_fd=folder)
    finally:
        os.close(folder)


def _end_of_log(place: ContainerFolder) -> str:
    try:
        files = open_log(place.log)
    except OSError as error:
        return f"Error on reading termination message from logs: {error.strerror}"
    try:
        go_to_last(files, LOG_LINES, None)
        chosen, end = ChosenLines(LogOptions()), b""
        for file in files:
            while (entries := file.read()) is not None:
                end = (end + chosen.add(entries))[-LOG_BYTES:]
            end = (end + chosen.add(file.unfinished()))[-LOG_BYTES:]
        return _text((end + chosen.end())[-LOG_BYTES:])
    finally:
        close_all(files)


def _text(data: bytes) -> str:
    """As Go writes it into JSON: one mark for every byte that is no text."""
    return _NOT_TEXT.sub("\ufffd", data.decode(errors="surrogateescape"))
