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


def test_a_link_in_the_current_directory_is_not_followed(tmp_path: Path, current_dir: Path) -> None:
    (current_dir / ".podstatus").symlink_to(tmp_path / "a")
    with agent_in(tmp_path / "a"), pytest.raises(RequestError, match=f"in {tmp_path}/podstatus;"):
        found({"XDG_DATA_HOME": str(tmp_path)})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_not_used(tmp_path: Path, current_dir: Path) -> None:
    with agent_in(current_dir / ".podstatus"):
        os.chown(current_dir / ".podstatus", 65534, 65534)
        with pytest.raises(RequestError, match=f"no agent runs in {tmp_path}/podstatus;"):
            found({"XDG_DATA_HOME": str(tmp_path)})
