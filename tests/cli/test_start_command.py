"""The command that starts an agent again."""

import sys
from pathlib import Path

import pytest

from podstatus.agent.daemon.root_dir import RootDir
from podstatus.cli.start_command import record_start, start_command, typed_start


@pytest.fixture(autouse=True)
def current_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "a b"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return folder


def started(monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str, make: bool = False) -> None:
    """Record the start of an agent that has stopped since."""
    monkeypatch.setattr(sys, "argv", ["pytest", *words])
    with RootDir(folder):
        record_start(folder, typed_start(make=make))


def test_an_agent_is_started_with_the_same_options(
    current_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = current_dir / "node-2"
    words = ("run", "--root-dir", "node-2", "--kubeconfig=my config")
    started(monkeypatch, folder, *words, "--no-supervise", "--stop-at-eof")
    assert start_command(folder) == "podstatus run --root-dir node-2 '--kubeconfig=my config'"


def test_relative_paths_need_the_same_directory(
    current_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(monkeypatch, current_dir / "node", "observe", "--root-dir=node")
    monkeypatch.chdir("/")
    command = f"cd '{current_dir}' && podstatus observe --root-dir=node"
    assert start_command(current_dir / "node") == command


def test_the_directory_is_named_unless_it_is_the_default(
    tmp_path: Path, current_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(monkeypatch, tmp_path / "podstatus", "run")
    assert start_command(tmp_path / "podstatus") == "podstatus run"
    started(monkeypatch, current_dir / "node", "run")  # with PODSTATUS_ROOT_DIR
    assert start_command(current_dir / "node") == f"podstatus run --root-dir '{current_dir}/node'"


def test_make_starts_what_make_has_started(
    current_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(monkeypatch, current_dir / ".podstatus", "run", make=True)
    assert start_command(current_dir / ".podstatus") == "make run"
    started(monkeypatch, current_dir / "node", "run", make=True)
    assert start_command(current_dir / "node") == "make run PODSTATUS_ROOT_DIR=node"
    monkeypatch.chdir("/")
    command = f"podstatus run --root-dir '{current_dir}/node'"
    assert start_command(current_dir / "node") == command


@pytest.mark.parametrize("content", [None, "damaged", '{"words": 1}'])
def test_without_a_record_the_node_is_started(
    current_dir: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    started(monkeypatch, current_dir / "node", "run", "--kubeconfig", "theirs")
    record = current_dir / "node" / "start.json"
    record.unlink()
    if content is not None:
        record.write_text(content)
        record.chmod(0o600)
    assert start_command(current_dir / "node") == "podstatus run --root-dir node"


def test_a_record_that_others_can_write_is_not_used(
    current_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(monkeypatch, current_dir / "node", "run", "--kubeconfig", "theirs")
    (current_dir / "node" / "start.json").chmod(0o666)
    assert start_command(current_dir / "node") == "podstatus run --root-dir node"
