"""Help in a terminal of 80 columns."""

import re

import pytest
from typer.testing import CliRunner

from podstatus.cli.register_commands import app

COMMANDS = re.findall(
    r"^  ([a-z]+)  ",
    CliRunner().invoke(app, ["--help"]).stdout.partition("Commands:")[2],
    re.MULTILINE,
)


def shown(*words: str) -> str:
    result = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    return result.stdout


@pytest.mark.parametrize("words", [(), *((name,) for name in COMMANDS), ("alerts", "check")])
def test_no_line_is_wider_than_the_terminal(words: tuple[str, ...]) -> None:
    assert max(map(len, shown(*words).splitlines())) <= 80


def test_no_summary_is_cut() -> None:
    lines = shown().partition("Commands:")[2].strip().splitlines()
    assert len(lines) == len(COMMANDS) > 15
    assert [line for line in lines if not re.fullmatch(r" *[a-z]+ +[A-Z].*[^.]\.", line)] == []


def test_watch_says_which_pods_it_shows() -> None:
    assert re.search(
        "^  watch +Watch the pods of this node and their health.$", shown(), re.MULTILINE
    )
    assert "Watch the pods of this node and their health." in shown("watch")


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (("get",), "[OPTIONS] pods|nodes|events|alerts [NAME]..."),
        (("describe",), "[OPTIONS] pods|nodes [NAME]..."),
        (("logs",), "[OPTIONS] POD"),
        (("exec",), "[OPTIONS] POD -- COMMAND [ARGS]..."),
        (("delete",), "[OPTIONS] [pod] [NAME]..."),
        (("drain",), "[OPTIONS]"),
        (("alerts", "check"), "[OPTIONS] FILE..."),
    ],
)
def test_a_usage_line_is_written_as_others_write_them(words: tuple[str, ...], usage: str) -> None:
    assert shown(*words).splitlines()[0] == f"Usage: podstatus {' '.join(words)} {usage}"
