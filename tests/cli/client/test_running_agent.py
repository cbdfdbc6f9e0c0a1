"""Which agent commands find."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podstatus.agent.daemon.endpoints_file import AgentEndpoints
from podstatus.agent.daemon.root_dir import RootDir
from podstatus.cli.client.request_errors import RequestError
from podstatus.cli.client.running_agent import running_endpoints
from podstatus.cli.start_command import StartCommand, record_start


@contextmanager
def agent_in(folder: Path) -> Iterator[None]:
    with RootDir(folder) as root:
        root.write_endpoints(AgentEndpoints(apiserver="", agent="", node=folder.name, pid=1))
        yield


@pytest.fixture(autouse=True)
def current_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "current"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def found(environment: dict[str, str], root_dir: Path | None = None) -> str:
    return running_endpoints(root_dir, environment).node


def test_the_current_directory_precedes_the_default(tmp_path: Path, current_dir: Path) -> None:
    environment = {"XDG_DATA_HOME": str(tmp_path)}
    with agent_in(tmp_path / "podstatus"):
        assert found(environment) == "podstatus"
        with agent_in(current_dir / ".podstatus"):
            assert found(environment) == ".podstatus"
        assert found(environment) == "podstatus"  # no agent runs there any more


def test_option_and_variable_precede_the_current_directory(
    tmp_path: Path, current_dir: Path
) -> None:
    with agent_in(current_dir / ".podstatus"), agent_in(tmp_path / "a"), agent_in(tmp_path / "b"):
        variable = {"PODSTATUS_ROOT_DIR": str(tmp_path / "a")}
        assert found(variable) == "a"
        assert found(variable, tmp_path / "b") == "b"


@pytest.mark.parametrize("planted", [".podstatus", ".podstatus/lock", ".podstatus/endpoints.json"])
def test_links_of_the_current_directory_are_not_followed(
    tmp_path: Path, current_dir: Path, planted: str
) -> None:
    """A cloned repository may have any file, but none that a process has locked."""
    link = current_dir / planted
    with agent_in(tmp_path / "a"), agent_in(current_dir / ".podstatus"):
        link.rename(tmp_path / "moved")
        link.symlink_to(tmp_path / "moved")
        with pytest.raises(RequestError, match=f"no agent runs in {tmp_path}/podstatus nor in "):
            found({"XDG_DATA_HOME": str(tmp_path)})


def test_files_without_a_running_agent_are_not_read(tmp_path: Path, current_dir: Path) -> None:
    with agent_in(current_dir / ".podstatus"):
        text = (current_dir / ".podstatus" / "endpoints.json").read_bytes()
    (current_dir / ".podstatus" / "endpoints.json").write_bytes(b"damaged" + text)
    with pytest.raises(RequestError, match=r"no agent runs in .*/current/\.podstatus; "):
        found({"XDG_DATA_HOME": str(tmp_path)})


@pytest.mark.parametrize("planted", [".podstatus", ".podstatus/lock", ".podstatus/endpoints.json"])
def test_what_others_can_write_is_not_used(tmp_path: Path, current_dir: Path, planted: str) -> None:
    with agent_in(current_dir / ".podstatus"):
        (current_dir / planted).chmod(0o777)
        with pytest.raises(RequestError, match=f"no agent runs in {tmp_path}/podstatus nor in "):
            found({"XDG_DATA_HOME": str(tmp_path)})


def test_a_lock_that_others_can_hold_is_not_used(tmp_path: Path, current_dir: Path) -> None:
    """A cloned file is readable by all, and whoever can read a file can lock it."""
    with agent_in(current_dir / ".podstatus"):
        (current_dir / ".podstatus/lock").chmod(0o644)
        with pytest.raises(RequestError, match=f"no agent runs in {tmp_path}/podstatus nor in "):
            found({"XDG_DATA_HOME": str(tmp_path)})


def test_an_agent_without_endpoints_is_starting(current_dir: Path) -> None:
    with (
        RootDir(current_dir / ".podstatus"),
        pytest.raises(RequestError, match=r"current/\.podstatus is starting; try again"),
    ):
        found({})


def test_a_stopped_agent_of_the_current_directory_is_mentioned(
    tmp_path: Path, current_dir: Path
) -> None:
    (current_dir / ".podstatus").mkdir()
    advice = "start the node in ./.podstatus again with: podstatus run --root-dir .podstatus"
    with pytest.raises(
        RequestError, match=rf"/podstatus nor in \./\.podstatus; {advice}, or pass the "
    ):
        found({"XDG_DATA_HOME": str(tmp_path)})


def test_the_directory_that_has_a_stopped_node_is_named(tmp_path: Path, current_dir: Path) -> None:
    environment, local = {"XDG_DATA_HOME": str(tmp_path)}, current_dir / ".podstatus"
    with RootDir(local):
        record_start(local, StartCommand(words=("run",), directory=str(current_dir), make=True))
    start = "start one with: make run, or pass the --root-dir of a running agent"
    with pytest.raises(RequestError) as raised:
        found(environment)
    assert str(raised.value) == f"no agent runs in {local}; {start}"
    RootDir(tmp_path / "podstatus").close()
    with pytest.raises(RequestError) as raised:
        found(environment)
    assert str(raised.value) == (
        f"no agent runs in {tmp_path}/podstatus nor in ./.podstatus; start the node in "
        "./.podstatus again with: make run, or pass the --root-dir of a running agent"
    )


def test_a_root_dir_that_was_named_is_the_only_one_mentioned(
    tmp_path: Path, current_dir: Path
) -> None:
    (current_dir / ".podstatus").mkdir()
    start = f"start one with: podstatus run --root-dir {tmp_path}/a, "
    with pytest.raises(RequestError, match=f"no agent runs in {tmp_path}/a; {start}"):
        found({}, tmp_path / "a")


def test_a_root_dir_of_the_environment_names_the_variable(tmp_path: Path) -> None:
    environment = {"PODSTATUS_ROOT_DIR": str(tmp_path / "a")}
    message = rf"no agent runs in {tmp_path}/a \(from \$PODSTATUS_ROOT_DIR\); start one with: "
    with pytest.raises(RequestError, match=message):
        found(environment)
    with pytest.raises(RequestError, match=f"no agent runs in {tmp_path}/b; start one with: "):
        found(environment, tmp_path / "b")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
@pytest.mark.parametrize("planted", [".podstatus", ".podstatus/lock", ".podstatus/endpoints.json"])
def test_what_another_user_has_is_not_used(tmp_path: Path, current_dir: Path, planted: str) -> None:
    with agent_in(current_dir / ".podstatus"):
        os.chown(current_dir / planted, 65534, 65534)
        with pytest.raises(RequestError, match=f"no agent runs in {tmp_path}/podstatus nor in "):
            found({"XDG_DATA_HOME": str(tmp_path)})
