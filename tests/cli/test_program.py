"""How messages name this program."""

import sys
from pathlib import Path

import pytest

from podstatus.cli import program
from podstatus.cli.program import (
    PROGRAM_VARIABLE,
    forget_options,
    remember_options,
    suggested_command,
    with_root_dir,
)


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a program that is not on PATH."""
    path = tmp_path / ".venv" / "bin" / "podstatus"
    path.parent.mkdir(parents=True)
    path.touch(mode=0o700)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return tmp_path


@pytest.mark.parametrize(
    ("called", "typed"),
    [
        (".venv/bin/podstatus", ".venv/bin/podstatus"),
        ("../a b/podstatus", "'../a b/podstatus'"),
        ("podstatus", "./podstatus"),
        ("/opt/podstatus/bin/podstatus", "/opt/podstatus/bin/podstatus"),
        ("/usr/bin/pytest", "podstatus"),
        ("/lib/pytest/__main__.py", "podstatus"),
        (
            str(Path(program.__file__).with_name("__main__.py")),
            f"{sys.executable} -P -m podstatus.cli",
        ),
    ],
)
def test_a_suggested_command_works_when_pasted(
    called: str, typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [called, "status"])
    assert suggested_command("get pods -A") == f"{typed} get pods -A"


def test_a_program_on_the_path_is_named_without_its_directory(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = checkout / ".venv" / "bin" / "podstatus"
    monkeypatch.setattr(sys, "argv", [str(called)])
    assert suggested_command("stop") == ".venv/bin/podstatus stop"
    monkeypatch.setenv("PATH", f"{called.parent}:/usr/bin")
    assert suggested_command("stop") == "podstatus stop"


def test_an_agent_names_the_program_that_its_supervisor_was_started_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(PROGRAM_VARIABLE, ".venv/bin/podstatus")
    assert suggested_command("stop") == ".venv/bin/podstatus stop"


def test_a_suggested_command_finds_the_same_agent() -> None:
    remember_options({"root_dir": "/a b", "kubeconfig": None, "namespace": "x"})
    try:
        assert suggested_command("get pods -A") == "podstatus get pods -A --root-dir '/a b'"
    finally:
        forget_options()


def test_a_root_directory_is_named_from_the_current_directory(checkout: Path) -> None:
    assert with_root_dir("down", checkout / ".podstatus") == "podstatus down --root-dir .podstatus"
    assert with_root_dir("down", Path("/a b")) == "podstatus down --root-dir '/a b'"
