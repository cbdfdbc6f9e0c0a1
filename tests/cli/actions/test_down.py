"""`podstatus down` without a node: what is refused, and which files are removed."""

import json
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from podstatus.agent.daemon.remove_root_dir import remove_root_dir
from podstatus.agent.daemon.root_dir import OBSERVER_FOLDERS, RootDir
from podstatus.cli.actions.take_down import DownOptions, describe_limit, take_down
from podstatus.cli.errors import report_errors
from podstatus.cli.register_commands import app
from podstatus.cli.start_command import StartCommand, record_start
from tests.cli.fake_node import fake_node


def down(root_dir: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["down", "--root-dir", str(root_dir), *words])


def test_a_node_of_another_cluster_is_refused(tmp_path: Path) -> None:
    with fake_node(tmp_path) as node:
        result = down(tmp_path, "--yes")
    assert (result.exit_code, node.asked) == (1, [])
    assert "which owns its pods; to terminate them: podstatus drain --root-dir " in result.stderr


def test_a_stopped_node_of_another_cluster_is_refused(tmp_path: Path) -> None:
    with RootDir(tmp_path) as root:
        root.write("server.json", json.dumps({"address": "https://far"}).encode())
    result = down(tmp_path, "--yes", "--remove-files")
    assert result.exit_code == 1
    assert "belongs to another cluster, which owns its pods; start its agent again" in result.stderr
    assert (tmp_path / "server.json").exists()


def test_an_observer_is_refused(tmp_path: Path) -> None:
    with fake_node(tmp_path, observes=True):
        result = down(tmp_path, "--yes")
    assert result.exit_code == 1
    assert result.stderr == (
        "podstatus: an observer has no pods to end; to stop it: podstatus stop "
        f"--root-dir {tmp_path}\n"
    )


def test_a_stopped_observer_is_refused(tmp_path: Path) -> None:
    RootDir(tmp_path, OBSERVER_FOLDERS).close()
    result = down(tmp_path, "--yes")
    assert result.exit_code == 1
    assert result.stderr == (
        f"podstatus: {tmp_path} has the files of an observer, which has no pods to end\n"
    )


def test_a_directory_without_an_agent_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    result = down(tmp_path, "--yes", "--remove-files")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"podstatus: no agent runs in {tmp_path}; ")
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_without_a_terminal_it_must_be_confirmed_by_an_option(tmp_path: Path) -> None:
    with RootDir(tmp_path) as root:
        root.write("server.json", b'{"embedded": true}')
    result = down(tmp_path)
    assert result.exit_code == 2
    assert "cannot ask for confirmation without a terminal; pass --yes" in result.stderr


def test_a_missing_agent_is_reported_before_a_confirmation_is_needed(tmp_path: Path) -> None:
    result = down(tmp_path)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"podstatus: no agent runs in {tmp_path}; ")


def test_what_a_stopped_agent_left_of_the_current_directory_must_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be planted: its records name processes."""
    with RootDir(tmp_path / ".podstatus") as root:
        root.write("server.json", b'{"embedded": true}')
        record_start(root.path, StartCommand(words=("run",), directory=str(tmp_path), make=True))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("PODSTATUS_ROOT_DIR", raising=False)
    result = CliRunner().invoke(app, ["down", "--yes", "--remove-files"])
    assert result.exit_code == 1
    assert result.stderr == (
        f"podstatus: no agent runs in {tmp_path}/.podstatus; to start the node in ./.podstatus "
        "again: make run; to delete its pods: podstatus down --root-dir .podstatus\n"
    )
    assert (tmp_path / ".podstatus/server.json").exists()


def test_a_stopped_node_without_pods_is_removed(tmp_path: Path) -> None:
    root_dir = tmp_path / "root"
    with RootDir(root_dir) as root:
        root.write("server.json", b'{"embedded": true}')
    result = down(root_dir, "--yes", "--remove-files")
    assert result.output == f"all containers have stopped; {root_dir} is removed\n"
    assert not root_dir.exists()


def test_other_files_and_the_targets_of_links_stay(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").touch()
    with RootDir(tmp_path / "root") as root:
        (root.path / "notes.txt").touch()
        (root.path / "logs").rmdir()
        (root.path / "logs").symlink_to(tmp_path / "kept")
        (root.path / "history.db-wal").symlink_to(tmp_path / "kept/file")
        assert remove_root_dir(root.path) == ["notes.txt"]
    assert [path.name for path in root.path.iterdir()] == ["notes.txt"]
    assert (tmp_path / "kept/file").exists()


@pytest.mark.parametrize(("seconds", "text"), [(5, "at most 5 s"), (0, "without a grace period")])
def test_how_long_it_takes_is_said(seconds: int, text: str) -> None:
    assert describe_limit(seconds) == text


class TypedInput:
    """Standard input of a terminal on which a key ends the question."""

    def __init__(self, pressed: type[BaseException]) -> None:
        self._pressed = pressed

    def isatty(self) -> bool:
        return True

    def readline(self, _: int = -1) -> str:
        raise self._pressed


@pytest.mark.parametrize(("pressed", "code"), [(KeyboardInterrupt, 130), (EOFError, 1)])
def test_ctrl_c_and_ctrl_d_at_the_question_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pressed: type[BaseException], code: int
) -> None:
    with RootDir(tmp_path) as root:
        root.write("server.json", b'{"embedded": true}')
    monkeypatch.setattr(sys, "stdin", TypedInput(pressed))
    with pytest.raises(typer.Exit) as exited, report_errors():
        take_down(tmp_path, DownOptions(grace_seconds=None, remove_files=True, assume_yes=False))
    assert exited.value.exit_code == code
    assert (tmp_path / "server.json").exists()
