"""`podstatus stop`: only the process that holds the lock gets a signal."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from podstatus.agent.daemon.root_dir import RootDir
from podstatus.apiserver.state_dir import StateDir
from podstatus.cli.actions.stop_agent import StoppedAgent, terminate_agent
from podstatus.cli.register_commands import app
from tests.cli.stopped_node import EXTERNAL, stopped_node

AGENT = """
import signal, sys, time
from pathlib import Path
from podstatus.agent.daemon.endpoints_file import AgentEndpoints
from podstatus.agent.daemon.root_dir import RootDir

with RootDir(Path(sys.argv[1])) as root:
    root.write_endpoints(AgentEndpoints(apiserver="", agent="", node="n1", pid=1))
    if "deaf" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("ready", flush=True)
    time.sleep(300)
"""


@contextmanager
def fake_agent(root_dir: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that holds the lock of a root directory."""
    command = [sys.executable, "-c", AGENT, str(root_dir), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def stop(root_dir: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["stop", "--root-dir", str(root_dir), *words])


def test_the_agent_is_stopped(tmp_path: Path) -> None:
    with fake_agent(tmp_path) as process:
        result = stop(tmp_path)
        assert process.wait(60) == -15
    assert result.exit_code == 0, result.stderr
    assert result.output == (
        f"stopped the agent of node n1 (pid {process.pid}); no containers are running; to start it "
        f"again: podstatus run --root-dir {tmp_path}\n"
    )


def test_one_that_does_not_end_is_reported(tmp_path: Path) -> None:
    with fake_agent(tmp_path, "deaf") as process:
        result = stop(tmp_path, "--timeout", "100ms")
        assert process.poll() is None
    assert result.exit_code == 1
    assert f"the agent (pid {process.pid}) has not ended within 0.1 s" in result.stderr


def test_one_that_does_not_end_is_killed_if_asked_for(tmp_path: Path) -> None:
    with fake_agent(tmp_path, "deaf") as process:
        stopped = terminate_agent(tmp_path, 0.1, kill=True)
        assert process.wait(60) == -9
    assert stopped == StoppedAgent(process.pid, "the agent of node n1")


def test_a_process_that_a_planted_lock_names_gets_no_signal(tmp_path: Path) -> None:
    with (
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"]) as other,
        fake_agent(tmp_path) as process,
    ):
        lock = {"pid": other.pid, "since": "2026-11-18T10:00:00Z"}
        (tmp_path / "lock").write_text(json.dumps(lock))
        result = stop(tmp_path)
        assert (other.poll(), process.poll()) == (None, None)
        other.kill()
    assert result.exit_code == 1
    assert f"cannot verify which process holds {tmp_path}/lock (it names pid " in result.stderr


def test_a_lock_without_a_process_gets_no_signal(tmp_path: Path) -> None:
    for text in ("", '{"pid": 0, "since": ""}', '{"pid": -1, "since": ""}'):
        with fake_agent(tmp_path) as process:
            (tmp_path / "lock").write_text(text)
            result = stop(tmp_path)
            assert process.poll() is None
        assert result.exit_code == 1
        assert "cannot verify which process holds " in result.stderr


def test_what_takes_the_node_down_is_not_stopped(tmp_path: Path) -> None:
    lock = StateDir(tmp_path, used_by="agent or observer", command="podstatus down")
    result = stop(tmp_path)
    lock.close()
    assert result.exit_code == 1
    assert result.stderr.startswith(f"podstatus: podstatus down is in progress in {tmp_path} (pid ")


def test_without_an_agent_there_is_nothing_to_stop(tmp_path: Path) -> None:
    result = stop(tmp_path)
    assert result.exit_code == 1
    assert result.stderr.startswith(
        f"podstatus: no agent runs in {tmp_path}; pass the --root-dir of "
    )


@pytest.fixture
def current_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory; commands find no other node."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("PODSTATUS_ROOT_DIR", raising=False)
    return tmp_path


def test_a_stopped_node_of_the_current_directory_can_be_started_again(current_dir: Path) -> None:
    RootDir(current_dir / ".podstatus").close()
    result = CliRunner().invoke(app, ["stop"])
    assert result.exit_code == 1
    assert result.stderr == (
        f"podstatus: no agent runs in {current_dir}/.podstatus; the node is stopped; no containers "
        "are running; to start it again: podstatus run --root-dir .podstatus\n"
    )


def test_containers_that_run_on_can_be_adopted_or_ended(current_dir: Path) -> None:
    stopped_node(current_dir / ".podstatus")
    result = CliRunner().invoke(app, ["stop"])
    assert result.stderr.endswith(
        "; the node is stopped; the containers of 1 pod keep running; to continue with them: "
        "podstatus run --root-dir .podstatus; to end them: podstatus down --root-dir .podstatus\n"
    )


def test_containers_of_an_external_cluster_are_ended_by_a_drain(current_dir: Path) -> None:
    stopped_node(current_dir / ".podstatus", EXTERNAL)
    result = CliRunner().invoke(app, ["stop"])
    assert result.stderr.endswith(
        "; to continue with them: podstatus run --root-dir .podstatus; to end them: start the node "
        "again, then: podstatus drain --root-dir .podstatus\n"
    )


def test_what_others_may_have_planted_is_only_mentioned(current_dir: Path) -> None:
    (current_dir / ".podstatus").mkdir()
    result = CliRunner().invoke(app, ["stop"])
    assert result.exit_code == 1
    assert "again: podstatus run --root-dir .podstatus; to delete its pods: " in result.stderr
    assert result.stderr.endswith(": podstatus down --root-dir .podstatus\n")
