"""Read credential files and pipes, within bounds."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from podstatus.client.auth.files import MAX_FILE_BYTES, UnreadableError, read_file


def write_file(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def write_pipe(path: Path, content: bytes) -> None:
    os.mkfifo(path)

    def write() -> None:
        with suppress(BrokenPipeError):  # the reader refuses the rest
            path.write_bytes(content)

    threading.Thread(target=write, daemon=True).start()


@pytest.mark.parametrize("write", [write_file, write_pipe])
def test_a_file_of_the_maximum_size_is_read_whole(
    write: Callable[[Path, bytes], None], tmp_path: Path
) -> None:
    content = os.urandom(1024) * (MAX_FILE_BYTES // 1024)
    write(tmp_path / "config", content)
    assert read_file(tmp_path / "config", pipes=True) == content


@pytest.mark.parametrize("write", [write_file, write_pipe])
def test_a_larger_file_is_refused_and_not_cut(
    write: Callable[[Path, bytes], None], tmp_path: Path
) -> None:
    write(tmp_path / "config", b"x" * (MAX_FILE_BYTES + 1))
    with pytest.raises(UnreadableError, match="larger than 4 MiB"):
        read_file(tmp_path / "config", pipes=True)


def test_a_pipe_is_refused_where_a_file_is_read_again(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "token")
    with pytest.raises(UnreadableError, match="pipe"):
        read_file(tmp_path / "token")
