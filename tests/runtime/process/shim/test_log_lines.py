"""Log entries and log files of the shim, without a process."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.runtime.process.shim.log_lines import MAX_ENTRY_BYTES, LogLineEncoder, timestamp
from podstatus.runtime.process.shim.rotating_log_file import LogWriter

MOMENT = 1_794_772_800_123_456_789
HEAD = b"2026-11-15T20:00:00.123456789Z stdout "


def entries(*pieces: bytes) -> list[bytes]:
    lines = LogLineEncoder("stdout")
    encoded = b"".join(lines.feed(piece, MOMENT) for piece in pieces) + lines.flush(MOMENT)
    assert not encoded or encoded.endswith(b"\n")
    log_entries = encoded.split(b"\n")[:-1]
    assert all(entry.startswith(HEAD) for entry in log_entries)
    return [entry.removeprefix(HEAD) for entry in log_entries]


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (0, b"1970-01-01T00:00:00.000000000Z"),
        (MOMENT, b"2026-11-15T20:00:00.123456789Z"),
        (MOMENT // 10**9 * 10**9 + 1, b"2026-11-15T20:00:00.000000001Z"),
    ],
)
def test_timestamps_have_nine_digits(moment: int, text: bytes) -> None:
    assert timestamp(moment) == text


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ((b"a\n",), [b"F a"]),
        ((b"a\nb\n\nc\n",), [b"F a", b"F b", b"F ", b"F c"]),
        ((b"a", b"b\n"), [b"F ab"]),
        ((b"a\nb",), [b"F a", b"P b"]),
        ((b"",), []),
        ((b"\n",), [b"F "]),
        ((b"a\r\n",), [b"F a\r"]),
        ((b"x" * MAX_ENTRY_BYTES, b"\n"), [b"F " + b"x" * MAX_ENTRY_BYTES]),
        ((b"x" * MAX_ENTRY_BYTES, b"y\n"), [b"P " + b"x" * MAX_ENTRY_BYTES, b"F y"]),
        (
            (b"x" * MAX_ENTRY_BYTES, b"y" * MAX_ENTRY_BYTES),
            [b"P " + b"x" * MAX_ENTRY_BYTES, b"P " + b"y" * MAX_ENTRY_BYTES],
        ),
    ],
)
def test_lines_become_entries(pieces: tuple[bytes, ...], expected: list[bytes]) -> None:
    assert entries(*pieces) == expected


def test_a_prompt_is_passed_on_and_its_line_goes_on() -> None:
    lines = LogLineEncoder("stdout")
    assert lines.feed(b"$ ", MOMENT) == b""
    assert lines.flush(MOMENT) == HEAD + b"P $ \n"
    assert lines.flush(MOMENT) == b""
    assert lines.feed(b"ls\n", MOMENT) == HEAD + b"F ls\n"


PIECES = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.sampled_from(
            [
                b"\n",
                b"\n\n",
                b"x" * MAX_ENTRY_BYTES,
                b"x" * (MAX_ENTRY_BYTES - 1) + b"\n",
                b"\x1b[2J",
            ]
        ),
    )
)


@given(PIECES)
def test_no_byte_is_lost_and_no_entry_too_long(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    log_entries = entries(*pieces)
    again = b"".join(entry[2:] + (b"\n" if entry[:1] == b"F" else b"") for entry in log_entries)
    assert again == whole
    assert all(len(entry) <= MAX_ENTRY_BYTES + 2 for entry in log_entries)


def test_a_log_is_rotated_between_entries(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "0.log", max_bytes=100, max_files=3)
    for number in range(20):
        log.write(b"".join(b"%d-%d %s\n" % (number, part, b"x" * 20) for part in range(3)))
    log.close()
    files = sorted(tmp_path.glob("0.log.*"))
    assert len(files) == 2
    retained = b"".join(path.read_bytes() for path in [*files, tmp_path / "0.log"])
    assert all(path.stat().st_size <= 100 for path in tmp_path.iterdir())
    # The retained part is the end, without a gap and in order.
    order = [tuple(map(int, line.split()[0].split(b"-"))) for line in retained.splitlines()]
    assert order[-1] == (19, 2)
    assert all(b == (a[0] + (a[1] == 2), (a[1] + 1) % 3) for a, b in pairwise(order))


def test_an_entry_longer_than_a_file_has_a_file_of_its_own(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "0.log", max_bytes=10, max_files=5)
    log.write(b"short\n" + b"x" * 50 + b"\nshort\n")
    log.close()
    files = [*sorted(tmp_path.glob("0.log.*")), tmp_path / "0.log"]
    assert [path.read_bytes() for path in files] == [b"short\n", b"x" * 50 + b"\n", b"short\n"]


def test_a_single_file_is_started_again(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "0.log", max_bytes=12, max_files=1)
    log.write(b"first\nsecond\nthird\n")
    log.close()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"third\n"]


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Limit the file size; the error is handled like that of a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_full_disk_costs_whole_lines_and_is_logged_once(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "0.log", max_bytes=10**6, max_files=3)
    with full_disk(10):
        log.write(b"one\ntwo\nthree\nfour\n")
        assert (tmp_path / "0.log").read_bytes() == b"one\ntwo\n"
        log.write(b"five\n")
    log.write(b"six\n")
    log.write(b"seven\n")
    log.close()
    one, two, notice, *rest = (tmp_path / "0.log").read_bytes().splitlines()
    assert (one, two, rest) == (b"one", b"two", [b"six", b"seven"])
    why = b"podstatus: 3 lines of this log were dropped: file too large"
    assert notice.partition(b"Z ")[2] == b"stderr F " + why


def test_a_log_that_was_dropped_at_the_end_is_complained_about(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = LogWriter(tmp_path / "no" / "0.log", max_bytes=100, max_files=3)
    log.write(b"one\ntwo\n")
    log.close()
    assert "2 lines were dropped: no such file or directory" in capfd.readouterr().err


def test_a_log_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "0.log").symlink_to(tmp_path / "elsewhere")
    log = LogWriter(tmp_path / "0.log", max_bytes=100, max_files=3)
    log.write(b"one\n")
    assert not (tmp_path / "elsewhere").exists()
