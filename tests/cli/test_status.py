"""`podstatus status`: a running agent, a silent one, a stopped one."""

import json
import os
import re
import socket
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from podstatus.agent.daemon.endpoints_file import AgentEndpoints
from podstatus.agent.daemon.restarts_file import AgentExit
from podstatus.agent.daemon.root_dir import RootDir
from podstatus.cli import agent_status
from podstatus.cli.client.https_client import AgentClient
from podstatus.cli.register_commands import app
from podstatus.cli.render.status_page import AgentState, SuggestedCommands, status_page
from podstatus.cli.start_command import StartCommand, record_start
from podstatus.kube.scalars.time import Time
from podstatus.observe.ports import Freshness, HistoryCounts, NodeSummary, SyncState
from podstatus.web.v1.wire import StatusResponse
from tests.cli.fake_node import FakeNode, fake_node
from tests.cli.stopped_node import EXTERNAL, stopped_node
from tests.support.certificates import authority

COMMANDS = SuggestedCommands(end="podstatus down", cancel_drain="podstatus drain --cancel")
NOW = Time.parse("2026-11-18T12:00:00Z")
HEALTHY = b"[+]ping ok\n[+]relist ok\nhealthz check passed\n"


def status(root_dir: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["status", "--root-dir", str(root_dir), *words])


def answers(node: FakeNode, **changes: Any) -> None:
    """What a healthy agent of two pods answers."""
    node.log = (HEALTHY,)
    node.progress = [{"state": "off"}]
    sync = {"unsent": 1, "oldestUnsentSeconds": 75, "inFlight": 2, "quarantined": 3, "outbox": 4}
    node.responses["/v1/status"] = {
        "pods": 2,
        "health": {"crashing": 1, "healthy": 1},
        "sync": sync,
        **changes,
    }
    node.responses["/v1/nodes"] = {"nodes": [{"name": "n1", "ready": True, "version": "v1.36.4"}]}


def test_a_running_agent_is_shown_in_a_few_lines(tmp_path: Path) -> None:
    with fake_node(tmp_path) as node:
        answers(node)
        result = status(tmp_path)
    first, *rest = result.stdout.splitlines()
    assert re.fullmatch(
        rf"node n1 has been running for \d+s \(since .*, pid {os.getpid()}\)", first
    )
    assert f"  files       {tmp_path}" in rest
    assert "  health      ok, 2 checks pass" in rest
    assert "  node        Ready" in rest
    assert "  pods        2: 1 crashing, 1 healthy" in rest
    assert (
        "  status sync 1 unsent, 2 in flight, 3 quarantined, 4 in the outbox, the oldest\n"
        "              for 1 min 15 s\n" in result.stdout
    )
    assert "drain" not in result.stdout
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_failing_check_is_shown_and_is_an_error(tmp_path: Path) -> None:
    state = running_state(checks={"ping": "", "relist": "no relist for 5 s"})
    assert "health      1 of 2 checks fail: relist: no relist for 5 s\n" in status_page(
        state, NOW, COMMANDS
    )
    assert not state.is_healthy
    with fake_node(tmp_path) as node:
        answers(node)
        node.log = (b"[+]ping ok\n[-]relist failed: no relist for 5 s\nhealthz check failed\n",)
        result = status(tmp_path)
    assert result.exit_code == 1
    assert "1 of 2 checks fail: relist: no relist for 5 s" in result.stdout


def test_what_says_nothing_is_omitted(tmp_path: Path) -> None:
    with fake_node(tmp_path) as node:
        answers(node, sync=dict.fromkeys(("unsent", "inFlight", "quarantined", "outbox"), 0))
        assert "status sync" not in status(tmp_path).stdout


def test_a_drained_node_has_a_remedy(tmp_path: Path) -> None:
    with fake_node(tmp_path) as node:
        answers(node)
        node.progress = [{"state": "drained"}]
        result = status(tmp_path)
    effect = "new pods stay Pending, or fail if already bound to the node"
    assert f"  drained     {effect}\n" in result.stdout
    cancel = f"podstatus drain --cancel --root-dir {tmp_path}"
    assert f"  to cancel   {cancel}\n" in result.stdout


def test_an_observer_needs_no_remedy(tmp_path: Path) -> None:
    with fake_node(tmp_path, node="", observes=True) as observer:
        answers(observer)
        result = status(tmp_path)
    assert (result.exit_code, "drain" in result.stdout) == (0, False)
    assert "  nodes       1, 1 Ready\n" in result.stdout


def test_containers_of_a_stopped_node_of_the_current_directory_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_node(tmp_path / ".podstatus")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("PODSTATUS_ROOT_DIR", raising=False)
    result = CliRunner().invoke(app, ["status"])
    assert result.exit_code == 1
    words = " ".join(result.stdout.split())
    assert words == (
        f"no agent runs in {tmp_path}/.podstatus; start one with: podstatus run --root-dir "
        ".podstatus, or pass the --root-dir of a running agent running containers of "
        "default/web to end podstatus down --root-dir .podstatus"
    )
    with RootDir(tmp_path / "podstatus"):  # what runs precedes what is stopped
        assert "  no answer   it is starting" in CliRunner().invoke(app, ["status"]).stdout


def test_containers_of_an_external_cluster_are_ended_by_a_drain(tmp_path: Path) -> None:
    stopped_node(tmp_path, EXTERNAL)
    drain = f"podstatus drain --root-dir {tmp_path}"
    assert f"  to end      start the node again, then: {drain}\n" in status(tmp_path).stdout


@pytest.mark.parametrize("supervised", [False, True])
def test_an_agent_that_hangs_is_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, supervised: bool
) -> None:
    monkeypatch.setattr(agent_status, "AgentClient", partial(AgentClient, timeout=0.1))
    start = ("run", "--supervise") if supervised else ("run",)
    with RootDir(tmp_path) as root, socket.create_server(("127.0.0.1", 0)) as silent:
        record_start(tmp_path, StartCommand(words=start, directory=str(tmp_path)))
        (tmp_path / "ca.crt").write_bytes(authority().pem)
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        certificate = str(tmp_path / "ca.crt")
        root.write_endpoints(
            AgentEndpoints(apiserver="", agent=url, node="n1", pid=1, agent_certificate=certificate)
        )
        result = status(tmp_path)
    shown = " ".join(result.stdout.split())
    supervisor = "; its supervisor replaces an agent that hangs" if supervised else ""
    assert shown.endswith(
        f"no answer the agent at {url} does not answer: it hangs or is overloaded{supervisor}"
    )
    assert result.exit_code == 1


def test_an_agent_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    with fake_node(tmp_path) as node:
        node.refusal = (503, "too busy")
        result = status(tmp_path)
    assert result.exit_code == 1
    assert "  no answer   too busy\n" in result.stdout


def test_an_agent_that_is_starting_is_shown(tmp_path: Path) -> None:
    with RootDir(tmp_path):
        result = status(tmp_path)
    assert "  no answer   it is starting: it has no endpoints yet\n" in result.stdout
    assert result.exit_code == 1


def test_without_an_agent_the_last_restarts_are_shown(tmp_path: Path) -> None:
    record = {"lived_seconds": 75, "signal": "SIGKILL", "restart_in_seconds": 1}
    lines = [json.dumps(record | {"at": f"2026-11-18T10:00:0{n}Z"}) for n in range(5)]
    (tmp_path / "restarts.jsonl").write_text("\n".join(lines))
    result = status(tmp_path)
    text = " ".join(result.stdout.split())
    assert text.startswith(f"no agent runs in {tmp_path}; start one with: podstatus run --root-dir")
    assert text.endswith(
        "restarts 2026-11-18T10:00:04Z, killed by SIGKILL after 1 min 15 s "
        "2026-11-18T10:00:03Z, killed by SIGKILL after 1 min 15 s "
        "2026-11-18T10:00:02Z, killed by SIGKILL after 1 min 15 s"
    )
    assert result.exit_code == 1


def test_a_damaged_record_of_restarts_is_reported(tmp_path: Path) -> None:
    (tmp_path / "restarts.jsonl").write_text("damaged")
    result = status(tmp_path)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"podstatus: cannot read {tmp_path}/restarts.jsonl: ")


def test_json_has_everything(tmp_path: Path) -> None:
    with fake_node(tmp_path) as node:
        answers(node)
        shown = json.loads(status(tmp_path, "-o", "json").stdout)
    assert shown["running"] is True
    assert shown["checks"] == {"ping": "", "relist": ""}
    assert shown["status"]["sync"]["outbox"] == 4


def test_lines_fit_80_columns() -> None:
    exit_ = AgentExit(
        at="2026-11-18T10:00:00Z",
        lived_seconds=3,
        exit_code=1,
        restart_in_seconds=1,
        last_lines=("first", "word " * 30),
    )
    state = running_state(checks={"relist": "no relist " * 20}, restarts=(exit_,))
    page = status_page(state, NOW, COMMANDS)
    assert max(map(len, page.splitlines())) <= 80
    assert "no answer for 4 min 10 s" in page
    assert "node        not Ready, KubeletNotReady: node is shutting down\n" in page
    assert "restarts    2026-11-18T10:00:00Z, exit code 1 after 3 s: word word" in page


def test_an_agent_that_hung_is_told_from_one_that_was_killed() -> None:
    exit_ = AgentExit(
        at="2026-11-18T10:00:00Z",
        lived_seconds=3600,
        signal="SIGABRT",
        hung="its event loop was silent for 15 s",
        restart_in_seconds=1,
    )
    page = status_page(running_state(restarts=(exit_,)), NOW, COMMANDS)
    assert " ".join(page.partition("restarts")[2].split()) == (
        "2026-11-18T10:00:00Z, hung after 1 h: its event loop was silent for 15 s; killed by "
        "SIGABRT, its stacks are in logs/stacks.txt"
    )


def running_state(**changes: Any) -> AgentState:
    """That of an agent whose API server does not answer."""
    node = NodeSummary(name="n1", reason="KubeletNotReady", message="node is shutting down")
    answer = StatusResponse(
        freshness=Freshness(server_reachable=False, server_age_seconds=250),
        history=HistoryCounts(),
        sync=SyncState(),
        pods=0,
        nodes=1,
        phases={},
        health={},
    )
    known: dict[str, Any] = {
        "running": True,
        "pid": 7,
        "since": "2026-11-18T10:00:00Z",
        "node_name": "n1",
        "api_server": "https://127.0.0.1:6443",
        "status": answer,
        "nodes": (node,),
    }
    return AgentState(root_dir="/var/lib/root", **(known | changes))
