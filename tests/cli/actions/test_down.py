"""`podstatus down` without a node: what is refused, and which files are removed."""

import subprocess
import sys
from pathlib import Path

import msgspec
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
from tests.cli.stopped_node import EXTERNAL, stopped_node


def down(root_dir: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["down", "--root-dir", str(root_dir), *words])


def test_a_node_of_another_cluster_is_refused(tmp_path: Path) -> None:
    with fake_node(tmp_path) as node:
        result = down(tmp_path, "--yes")
    assert (result.exit_code, node.asked) == (1, [])
    assert "which owns its pods; to terminate them: podstatus drain --root-dir " in result.stderr


def test_a_stopped_node_of_another_cluster_is_refused(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"]) as container:
        stopped_node(tmp_path, EXTERNAL, pid=container.pid)
        result = down(tmp_path, "--yes", "--remove-files")
        assert container.poll() is None
        container.kill()
    assert result.exit_code == 1
    start = f"podstatus run --root-dir {tmp_path}"
    assert (
        f"belongs to another cluster, which owns its pods; start its agent again: {start}; then, "
        "to terminate the pods: podstatus drain" in result.stderr
    )
    assert (tmp_path / "server.json").exists()


def test_one_that_is_starting_is_refused(tmp_path: Path) -> None:
    with RootDir(tmp_path) as root:
        root.write("server.json", msgspec.json.encode(EXTERNAL))
        result = down(tmp_path, "--yes")
    assert (result.exit_code, "belongs to another cluster" in result.stderr) == (1, True)


def test_without_containers_there_is_nothing_to_refuse(tmp_path: Path) -> None:
    root_dir = tmp_path / "root"
    with RootDir(root_dir) as root:
        root.write("server.json", msgspec.json.encode(EXTERNAL))
    result = down(root_dir)
    files = f"the files of the node are in {root_dir}"
    assert (result.exit_code, result.output) == (0, f"no containers are running; {files}\n")
    (root_dir / "outbox/u1.json").touch()
    unsent = down(root_dir, "--yes", "--remove-files")
    assert (unsent.exit_code, "has final statuses of pods" in unsent.stderr) == (1, True)
    (root_dir / "outbox/u1.json").unlink()
    removed = down(root_dir, "--yes", "--remove-files")
    assert (removed.exit_code, root_dir.exists()) == (0, False)


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
