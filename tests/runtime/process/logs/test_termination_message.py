import os
from pathlib import Path

import pytest

from podstatus.runtime.process.logs.termination_message import termination_message
from tests.runtime.process.a_log import ALog, a_launch, an_exit


@pytest.fixture
def log(tmp_path: Path) -> ALog:
    folder = tmp_path / "container"
    folder.mkdir()
    return ALog(folder)


def message(log: ALog, *, code: int = 3, fallback: bool = False, path: Path | None = None) -> str:
    launch = a_launch(message_path=str(path or log.place.message), message_fallback=fallback)
    return termination_message(log.place, launch, an_exit(code))


def test_what_the_file_says(log: ALog) -> None:
    log.place.message.write_text("all is lost")
    assert message(log) == "all is lost"
    assert message(log, code=0) == "all is lost"


def test_of_a_long_file_the_end_is_taken(log: ALog) -> None:
    log.place.message.write_text(f"{7:05000}")
    assert message(log) == f"{7:04096}"


def test_no_file_and_no_path_are_no_message(log: ALog) -> None:
    assert message(log) == ""
    assert termination_message(log.place, a_launch(), an_exit(3)) == ""


def test_the_end_of_the_log_is_taken_after_an_error_only(log: ALog) -> None:
    log.write("one", "two")
    assert message(log, fallback=True) == "one\ntwo\n"
    assert message(log, fallback=True, code=0) == ""
    assert message(log, fallback=False) == ""
    log.place.message.write_text("")
    assert message(log, fallback=True) == "one\ntwo\n"
    log.place.message.write_text("written")
    assert message(log, fallback=True) == "written"


def test_a_last_line_of_the_log_without_a_newline_gets_none(log: ALog) -> None:
    log.write("one")
    log.write("DONE", tag="P")
    assert message(log, fallback=True) == "one\nDONE"


def test_of_a_long_log_the_last_lines_are_taken(log: ALog) -> None:
    log.write(*(f"line {n}" for n in range(50)))
    log.put_away()
    log.write(*(f"line {n}" for n in range(50, 100)))
    assert message(log, fallback=True) == "".join(f"line {n}\n" for n in range(20, 100))


def test_of_long_lines_the_last_bytes_are_taken(log: ALog) -> None:
    log.write("a" * 1000, "b" * 1000, "c" * 1000, stream="stderr")
    assert message(log, fallback=True) == "a" * 45 + "\n" + "b" * 1000 + "\n" + "c" * 1000 + "\n"


def test_why_it_could_not_run_comes_first(log: ALog) -> None:
    log.place.message.write_text("words")
    launch = a_launch(message_path=str(log.place.message), message_fallback=True)
    failed = an_exit(128, reason="StartError", message='exec: "x": no such file or directory')
    text = termination_message(log.place, launch, failed)
    assert text == 'exec: "x": no such file or directory: words'
    log.place.message.unlink()
    log.write("not from this")
    assert termination_message(log.place, launch, failed) == failed.message


def test_bytes_that_are_no_text_are_replaced_one_by_one(log: ALog) -> None:
    log.place.message.write_bytes(b"\xe2\x82x\xff\xc3\xbc\0")
    assert message(log) == "\ufffd\ufffdx\ufffdü\0"


def test_a_file_that_is_not_one_is_refused(log: ALog, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    place = log.place.message
    place.symlink_to(secret)
    assert message(log).endswith("message: Too many levels of symbolic links")
    place.unlink()
    os.mkfifo(place)
    assert message(log).endswith("message: not a regular file")
    place.unlink()
    place.mkdir()
    assert message(log).endswith("message: not a regular file")
    place.rmdir()
    place.hardlink_to(secret)
    assert message(log).endswith("message: the file has more than one hard link")


def test_a_folder_on_the_way_that_became_a_link_is_not_followed(log: ALog, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/term").write_text("words")
    (tmp_path / "other").mkdir()
    assert message(ALog(tmp_path / "other"), path=tmp_path / "work/term") == "words"
    (tmp_path / "link").symlink_to(tmp_path / "work")
    text = message(log, path=tmp_path / "link/term")
    assert text.startswith("Error on reading termination log ")
    assert "words" not in text


def test_a_huge_file_is_not_read_whole(log: ALog) -> None:
    with log.place.message.open("wb") as file:
        file.truncate(1 << 40)
    assert message(log) == "\0" * 4096


def test_words_left_outside_are_not_those_of_the_next_attempt(log: ALog, tmp_path: Path) -> None:
    outside = tmp_path / "words"
    outside.write_bytes(b"first \xff" * 700)
    first = message(log, path=outside)
    outside.write_text("second")
    assert message(log, path=outside) == first
    following = tmp_path / "following"
    following.mkdir()
    assert message(ALog(following), path=outside) == "second"


def test_an_attempt_that_left_no_words_outside_has_none_of_the_next(
    log: ALog, tmp_path: Path
) -> None:
    assert message(log, path=tmp_path / "words") == ""
    (tmp_path / "words").write_text("second")
    assert message(log, path=tmp_path / "words") == ""
