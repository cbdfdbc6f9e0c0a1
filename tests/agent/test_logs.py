"""Log lines: for people, for programs, and never with secrets."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from podstatus.agent.logs import configure_logs

logger = logging.getLogger("podstatus.node.lease")
other = logging.getLogger("somebody.else")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("podstatus")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:], level, our_level = before
    root.setLevel(level)
    ours.setLevel(our_level)


def logged(verbosity: int = 2, log_format: str = "text") -> io.StringIO:
    stream = io.StringIO()
    configure_logs(verbosity, log_format, stream)
    return stream


def test_a_line_for_people_begins_with_the_time() -> None:
    out = logged()
    logger.info("lease renewed: node=%s seconds=%.1f", "n1", 0.25)
    time, level, where, rest = out.getvalue().split(None, 3)
    assert time.endswith("Z")
    assert time[10] == "T"
    assert (level, where) == ("INFO", "node.lease:")
    assert rest == "lease renewed: node=n1 seconds=0.2\n"


def test_a_line_for_programs_has_fields() -> None:
    out = logged(log_format="json")
    told = "lease not renewed: node=%s tries=%d error=%s time=%s"
    logger.warning(told, "n1", 3, ValueError("no"), "10s")
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
