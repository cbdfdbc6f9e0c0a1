"""`podstatus run` when ports are in use."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from podstatus.agent.daemon.root_dir import RootDir
from podstatus.agent.errors import AgentError
from podstatus.agent.settings.model import AgentSettings
from podstatus.apiserver.state_dir import StateDir
from podstatus.cli.register_commands import app
from podstatus.cli.start import run_node

Ports = tuple[int, int]
pytestmark = pytest.mark.usefixtures("_logging_as_before")


@pytest.fixture
def used() -> Iterator[Ports]:
    with socket.create_server(("127.0.0.1", 0)) as a, socket.create_server(("127.0.0.1", 0)) as b:
        yield a.getsockname()[1], b.getsockname()[1]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[AgentSettings]:
    """The settings of the agents that were started; each fails at once."""
    settings: list[AgentSettings] = []

    async def run_agent(given: AgentSettings, *_: object, **__: object) -> bool:
        settings.append(given)
        raise AgentError("enough")

    monkeypatch.setattr(run_node, "run_agent", run_agent)
    return settings


def run(root_dir: Path, used: Ports, *words: str) -> Result:
    ports = ("--apiserver-port", str(used[0]), "--port", str(used[1]), "--healthz-port", "0")
    return CliRunner().invoke(app, ["run", "--root-dir", str(root_dir), *ports, *words])


def test_all_ports_in_use_are_reported_at_once_with_a_remedy(
    tmp_path: Path, used: Ports, started: list[AgentSettings]
) -> None:
    result = run(tmp_path, used)
    names = f"ports in use: {used[1]} (--port), {used[0]} (--apiserver-port); "
    assert (result.exit_code, started) == (1, [])
    assert names in result.stderr
    assert result.stderr.rstrip().endswith("--use-free-ports")


def test_free_ports_replace_those_in_use_and_no_others(
    tmp_path: Path, used: Ports, started: list[AgentSettings]
) -> None:
    result = run(tmp_path, used, "--use-free-ports", "--healthz-port", "10999")
    (settings,) = started
    assert (settings.port, settings.apiserver_port, settings.healthz_port) == (0, 0, 10999)
    assert result.stdout.splitlines() == [
        f"port {used[1]} is in use (--port); a free one is used instead",
        f"port {used[0]} is in use (--apiserver-port); a free one is used instead",
    ]


def test_an_agent_in_the_root_dir_is_reported_rather_than_its_ports(
    tmp_path: Path, used: Ports, started: list[AgentSettings]
) -> None:
    with RootDir(tmp_path):
        result = run(tmp_path, used)
    assert (result.exit_code, started) == (2, [])
    assert result.stderr.startswith(f"podstatus: {tmp_path} is in use by another agent or observer")
    assert f"to stop it: podstatus stop --root-dir {tmp_path}; " in result.stderr
    assert result.stderr.endswith(
        "another root directory: podstatus run --root-dir PATH --use-free-ports\n"
    )


def test_a_node_that_is_being_taken_down_cannot_be_stopped(
    tmp_path: Path, used: Ports, started: list[AgentSettings]
) -> None:
    lock = StateDir(tmp_path, used_by="agent or observer", command="podstatus down")
    result = run(tmp_path, used)
    lock.close()
    assert (result.exit_code, started) == (2, [])
    assert result.stderr.startswith(
        f"podstatus: podstatus down is in progress in {tmp_path} (pid {os.getpid()}, since "
    )
    assert result.stderr.endswith("); wait until it has ended\n")


def test_make_run_names_the_variable_that_make_takes(
    tmp_path: Path, used: Ports, started: list[AgentSettings]
) -> None:
    with RootDir(tmp_path):
        result = run(tmp_path, used, "--from-make")
    assert result.stderr.endswith("another root directory: make run PODSTATUS_ROOT_DIR=PATH\n")
    assert started == []


def test_an_observer_reports_its_root_directory_and_its_port_before_it_starts(
    tmp_path: Path, used: Ports
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch()
    words = ["observe", "--kubeconfig", str(kubeconfig), "--root-dir", str(tmp_path)]
    result = CliRunner().invoke(app, [*words, "--port", str(used[0])])
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"ports in use: {used[0]} (--port); " in result.stderr
    assert result.stderr.rstrip().endswith("--port 0")
    with RootDir(tmp_path):
        result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert result.stderr.endswith("directory: podstatus observe --root-dir PATH\n")
