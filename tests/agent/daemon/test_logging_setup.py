"""Log lines as text and JSON, without secrets."""

import io
import json
import logging
import stat
from pathlib import Path

import pytest

from podstatus.agent.daemon import logging_setup
from podstatus.agent.daemon.logging_setup import configure_logging, log_to_file
from tests.support.full_disk import no_file_can_grow

logger = logging.getLogger("podstatus.node.lease")
other = logging.getLogger("third.party")
pytestmark = pytest.mark.usefixtures("_logging_as_before")


def logged(verbosity: int = 2, log_format: str = "text") -> io.StringIO:
    stream = io.StringIO()
    configure_logging(verbosity, log_format, stream)
    return stream


def test_a_line_for_people_begins_with_the_time() -> None:
    out = logged()
    logger.info("lease renewed: node=%s seconds=%.1f", "n1", 0.25)
    time, level, where, rest = out.getvalue().split(None, 3)
    assert time.endswith("Z")
    assert time[10] == "T"
    assert (level, where) == ("INFO", "node.lease:")
    assert rest == "lease renewed: node=n1 seconds=0.2\n"


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_what_others_say_is_no_line_of_ours(log_format: str) -> None:
    out = logged(log_format=log_format)
    forged = "x\n2024-01-01T00:00:00.000000Z ERROR   agent.run: all is lost"
    logger.info("event sent: message=%s", forged)
    assert len(out.getvalue().splitlines()) == 1


def test_a_line_for_programs_has_fields() -> None:
    out = logged(log_format="json")
    message = "lease not renewed: node=%s tries=%d error=%s time=%s"
    logger.warning(message, "n1", 3, ValueError("no"), "10s")
    line = json.loads(out.getvalue())
    assert line.pop("time")
    assert line == {
        "level": "warning",
        "logger": "podstatus.node.lease",
        "message": "lease not renewed",
        "node": "n1",
        "tries": 3,
        "error": "no",
        "time_": "10s",
    }


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_traceback_is_there(log_format: str) -> None:
    out = logged(log_format=log_format)
    try:
        int("oops")
    except ValueError:
        logger.exception("it broke")
    assert "ValueError: invalid literal" in out.getvalue()
    if log_format == "json":
        assert "Traceback" in json.loads(out.getvalue())["exception"]


@pytest.mark.parametrize("log_format", ["text", "json"])
@pytest.mark.parametrize(
    ("message", "value"),
    [
        ("sent: header=%s", "Authorization: Bearer s3cr3t"),
        ("sent: token=%s", "s3cr3t"),
        ("sent: body=%s", '{"password": "s3cr3t"}'),
        ("asked: url=%s", "https://me:s3cr3t@example.com/x"),
        ("read: key=%s", "-----BEGIN PRIVATE KEY-----\ns3cr3t\n-----END PRIVATE KEY-----"),
    ],
)
def test_secrets_are_never_logged(log_format: str, message: str, value: str) -> None:
    out = logged(log_format=log_format)
    logger.info(message, value)
    assert out.getvalue()
    assert "s3cr3t" not in out.getvalue()


def test_a_logged_patch_is_not_cut_between_two_values() -> None:
    patch = '{"containerID":"process://ab","image":"web:1","imageID":"web@sha256:cd"}'
    out = logged()
    logger.info("patching status: patch=%s", patch)
    assert patch in out.getvalue()


@pytest.mark.parametrize(
    ("verbosity", "ours", "others"),
    [(0, "W", "W"), (1, "IW", "W"), (2, "IW", "W"), (4, "DIW", "W"), (6, "DIW", "DIW")],
)
def test_the_number_says_how_much(verbosity: int, ours: str, others: str) -> None:
    for source, expected in ((logger, ours), (other, others)):
        out = logged(verbosity)
        for level in (logging.DEBUG, logging.INFO, logging.WARNING):
            source.log(level, "something happened")
        assert "".join(line.split()[1][0] for line in out.getvalue().splitlines()) == expected


def test_a_file_has_what_changes_though_the_terminal_is_quiet(tmp_path: Path) -> None:
    out = logged(verbosity=0)
    with log_to_file(tmp_path, 0, "text"):
        logger.info("lease renewed")
        logger.debug("nothing new")
        other.info("of no interest")
        logger.warning("token=secret")
    logger.warning("afterwards")
    logger.info("not shown")
    lines = (tmp_path / "podstatus.log").read_text().splitlines()
    assert [line.split(": ", 1)[1] for line in lines] == ["lease renewed", "token=…"]
    assert [line.split(": ", 1)[1] for line in out.getvalue().splitlines()] == [
        "token=…",
        "afterwards",
    ]


def test_the_file_is_bounded_and_its_owners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging_setup, "_MAX_BYTES", 1000)
    logged()
    with log_to_file(tmp_path, 2, "text"):
        for number in range(200):
            logger.info("line: number=%d", number)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == [
        "podstatus.log",
        *(f"podstatus.log.{number}" for number in range(1, 5)),
    ]
    assert all(file.stat().st_size <= 1000 for file in files)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert "number=199" in files[0].read_text()


def test_a_file_that_cannot_be_written_does_not_matter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = logged()
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "podstatus.log").symlink_to(tmp_path / "elsewhere")
    with log_to_file(tmp_path, 2, "text"):
        logger.info("one")
    with log_to_file(tmp_path / "none", 2, "text"):
        logger.info("two")
    assert [line[-3:] for line in out.getvalue().splitlines()] == ["one", "two"]
    assert (tmp_path / "elsewhere").read_text() == ""
    assert capsys.readouterr().err == ""


def test_a_disk_that_is_full_raises_nothing(tmp_path: Path) -> None:
    out = logged()
    with no_file_can_grow(), log_to_file(tmp_path, 2, "text"):
        logger.info("lease renewed: node=%s", "n1")
    assert [path.stat().st_size for path in tmp_path.glob("*.log")] == [0]
    assert "lease renewed: node=n1" in out.getvalue()
