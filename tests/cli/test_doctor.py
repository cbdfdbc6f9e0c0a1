"""`podstatus doctor` with and without problems."""

import re
import shlex
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from podstatus.agent.daemon.root_dir import RootDir
from podstatus.alerts.defaults import default_rules_text
from podstatus.apiserver.pki import token_and_kubeconfig
from podstatus.apiserver.state_dir import StateDir
from podstatus.cli.doctor_checks import (
    HINT,
    OK,
    PROBLEM,
    Finding,
    check_clock,
    check_disk,
    check_files,
    check_packages,
    check_pids,
    check_python,
    check_rights,
)
from podstatus.cli.register_commands import app
from podstatus.cli.start_command import StartCommand, record_start
from podstatus.kube.scalars.time import Time
from podstatus.testing.apiserver import running_api_server
from tests.cli.stopped_node import EXTERNAL, stopped_node
from tests.support.processes.api_servers import NODES, RealServer
from tests.support.processes.process_runtime import need_bubblewrap

MIB = 2**20


def doctor(*options: str) -> tuple[Result, dict[str, list[str]]]:
    """What it prints, and its result and words by the name of the check."""
    result = CliRunner().invoke(app, ["doctor", *options])
    rows = [line.split(None, 2) for line in result.stdout.splitlines()[1:]]
    return result, {name: words for name, *words in rows}


@pytest.mark.parametrize(
    ("finding", "result"),
    [
        (check_python((3, 11)), OK),
        (check_python((3, 10)), PROBLEM),
        (check_packages({"a": "1", "b": "2"}), OK),
        (check_packages({"a": "1", "b": None}), PROBLEM),
        (check_clock(Time.parse("2026-11-15T00:00:00Z")), OK),
        (check_clock(Time.parse("1970-01-01T00:00:10Z")), PROBLEM),
        (check_clock(Time.parse("2106-02-07T06:28:15Z")), PROBLEM),
        (check_disk(5000 * MIB, "/x"), OK),
        (check_disk(500 * MIB, "/x"), HINT),
        (check_disk(5 * MIB, "/x"), PROBLEM),
        (check_files(None), OK),
        (check_files(1024), OK),
        (check_files(1000), HINT),
        (check_files(64), PROBLEM),
        (check_pids(100, 32768), OK),
        (check_pids(32000, 32768), HINT),
        (check_pids(32700, 32768), PROBLEM),
        (check_rights([], "me"), OK),
        (check_rights(["list pods"], "me"), PROBLEM),
    ],
)
def test_what_is_measured_is_judged(finding: Finding, result: str) -> None:
    assert finding.result == result
    assert bool(finding.remedy) == (result != OK)


def test_a_fine_place_is_fine(tmp_path: Path) -> None:
    root = tmp_path / "not" / "yet"
    result, found = doctor("--root-dir", str(root), "--port", "0")
    assert result.exit_code == 0
    assert found["root-dir"] == ["ok", f"{root} (will be created)"]
    assert found["apiserver-port"] == ["ok", "a free port will be picked"]
    assert not root.exists()


def test_all_problems_are_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result, found = doctor(
            *("--root-dir", str(tmp_path / "file"), "--apiserver-port", str(port)),
            *("--pod-manifest-path", str(tmp_path / "manifests")),
        )
    assert result.exit_code == 1
    assert found["root-dir"][0] == found["apiserver-port"][0] == "problem"
    assert "--root-dir" in found["root-dir"][1]
    assert f"cannot listen on 127.0.0.1 port {port}" in found["apiserver-port"][1]
    assert "pass another --apiserver-port (0 picks a free one)" in found["apiserver-port"][1]
    assert found["manifests"][0] == "hint"


def test_mistakes_in_settings_are_problems() -> None:
    result, found = doctor("--max-pods", "x")
    assert result.exit_code == 1
    assert found == {
        "settings": ["problem", '--max-pods: "x" is not an integer of at least 0'],
    }


def test_a_node_that_runs_is_no_problem(tmp_path: Path) -> None:
    with RootDir(tmp_path):
        result, found = doctor("--root-dir", str(tmp_path))
    assert result.exit_code == 0
    assert found["root-dir"][0] == "hint"
    assert " is in use (pid " in found["root-dir"][1]
    assert "apiserver-port" not in found


def test_a_second_node_is_started_as_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with RootDir(tmp_path / "root") as root:
        start = StartCommand(words=("run",), directory=str(tmp_path), make=True)
        for recorded, command in (
            (None, "podstatus run --root-dir PATH --use-free-ports"),
            (start, "make run PODSTATUS_ROOT_DIR=PATH"),
        ):
            if recorded is not None:
                record_start(root.path, recorded)
            _, found = doctor("--root-dir", str(root.path))
            assert found["root-dir"][1].endswith(f"; for a second node: {command}")


def test_a_node_that_is_being_taken_down_is_not_in_use_for_long(tmp_path: Path) -> None:
    lock = StateDir(tmp_path, used_by="agent or observer", command="podstatus down")
    _, found = doctor("--root-dir", str(tmp_path))
    lock.close()
    assert found["root-dir"][0] == "hint"
    assert found["root-dir"][1].startswith(f"podstatus down is in progress in {tmp_path} (pid ")
    assert found["root-dir"][1].endswith("; wait until it has ended")


def test_a_node_that_runs_in_the_current_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As other commands find it; only if no root directory is named."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("PODSTATUS_ROOT_DIR", raising=False)
    with RootDir(tmp_path / ".podstatus"):
        result, found = doctor()
        _, named = doctor("--root-dir", str(tmp_path / "podstatus"), "--port", "0")
    assert result.exit_code == 0
    assert f"{tmp_path}/.podstatus is in use" in found["root-dir"][1]
    assert "apiserver-port" not in found
    assert named["root-dir"][1] == f"{tmp_path}/podstatus (will be created)"


def test_a_stopped_node_of_the_current_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("PODSTATUS_ROOT_DIR", raising=False)
    RootDir(tmp_path / ".podstatus").close()
    _, found = doctor("--port", "0")
    start = "podstatus run --root-dir .podstatus"
    stopped = f"{tmp_path}/.podstatus has a node that is stopped"
    assert found["root-dir"] == ["ok", f"{stopped}; to start it: {start}"]
    stopped_node(tmp_path / ".podstatus")
    end = "to end them: podstatus down --root-dir .podstatus"
    _, found = doctor("--port", "0")
    assert found["root-dir"] == [
        "hint",
        f"{stopped}, and containers of default/web run; to continue with them: {start}; {end}",
    ]


def test_manifests_are_counted(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.json", ".hidden"):
        (tmp_path / name).touch()
    options = ("--port", "0", "--root-dir", str(tmp_path / "root"))
    _, found = doctor("--pod-manifest-path", str(tmp_path), *options)
    assert found["manifests"] == ["ok", f"2 files in {tmp_path}"]


def test_alert_rules_are_read(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("rules:\n- {name: Bad, expr: '!pod.ready'}\n")
    options = ("--root-dir", str(tmp_path / "root"), "--port", "0", "--alert-rules", str(file))
    defaults = default_rules_text().count("\n- name: ")
    counts = f"{defaults + 1} rules, {defaults} of them default rules"
    assert doctor(*options)[1]["alert-rules"] == ["ok", counts]
    file.write_text("rules:\n- {name: Bad, expr: pod.fase}\n")
    result, found = doctor(*options)
    assert result.exit_code == 1
    assert found["alert-rules"][0] == "problem"
    assert f"{file}:2:21" in found["alert-rules"][1]
    file.write_text("rules: []\n")
    result, found = doctor(*options)
    assert result.exit_code == 0
    assert found["alert-rules"][0] == "hint"
    assert f"{file}:1:8: note: the file has no rules" in found["alert-rules"][1]


def test_another_server_is_asked(tmp_path: Path) -> None:
    with running_api_server(tmp_path / "server") as server:
        options = ("--kubeconfig", str(server.kubeconfig), "--runtime", "simulated")
        more = ("--port", "0", "--root-dir", str(tmp_path / "root"))
        result, found = doctor(*options, *more)
        assert result.exit_code == 0
        assert found["api-server"] == ["ok", f"{server.url} answers"]
        assert found["permissions"][0] == "hint"
        assert "apiserver-port" not in found
    result, found = doctor(*options, *more)
    assert result.exit_code == 1
    assert found["api-server"][0] == "problem"
    assert "cannot connect to" in found["api-server"][1]


def test_of_a_node_of_another_cluster_the_recorded_start_is_checked(tmp_path: Path) -> None:
    root_dir = tmp_path / "root"
    stopped_node(root_dir, EXTERNAL)
    options = ("--root-dir", str(root_dir), "--port", "0")
    belongs = "not checked: the node belongs to the cluster at https://far"
    result, found = doctor(*options)
    assert found["api-server"] == ["hint", f"{belongs}; pass the --kubeconfig of its start"]
    assert f"again, then: podstatus drain --root-dir {root_dir}" in found["root-dir"][1]
    record_start(root_dir, StartCommand(words=("run",), directory=str(Path.cwd())))
    assert doctor(*options)[1]["api-server"][1].endswith("; pass the --kubeconfig of its start")
    words = ("--root-dir", str(root_dir), "--kubeconfig", "k c", "--runtime", "simulated")
    start = StartCommand(words=("run", *words, "--use-free-ports"), directory=str(Path.cwd()))
    record_start(root_dir, start)
    result, found = doctor(*options)
    command = f"podstatus doctor {shlex.join(words)}"
    assert found["api-server"] == ["hint", f"{belongs}; to check it: {command}"]
    assert result.exit_code == 0


def test_an_invalid_kubeconfig_is_reported(tmp_path: Path) -> None:
    bad = tmp_path / "kubeconfig"
    bad.write_text("kind: Pod")
    result, found = doctor("--kubeconfig", str(bad), "--runtime", "simulated", "--port", "0")
    assert result.exit_code == 1
    assert "is not a kubeconfig" in found["api-server"][1]


def test_the_user_of_a_node_may_be_that_node_and_no_other(
    real_server: RealServer, tmp_path: Path
) -> None:
    access = real_server.node_access(NODES[0])
    kubeconfig = tmp_path / "kubeconfig"
    authority = access.authority.read_bytes()
    client = token_and_kubeconfig.ClientCredentials(
        url=access.url, token=access.token, authority=authority
    )
    kubeconfig.write_bytes(token_and_kubeconfig.kubeconfig(client))
    options = ("--kubeconfig", str(kubeconfig), "--runtime", "simulated", "--port", "0")
    more = ("--root-dir", str(tmp_path / "root"))
    result, found = doctor(*options, *more, "--hostname-override", NODES[0])
    assert found["permissions"][0] == "ok", found
    assert result.exit_code == 0
    result, found = doctor(*options, *more, "--hostname-override", NODES[1])
    assert result.exit_code == 1
    assert found["permissions"][0] == "problem"
    assert "is not allowed to" in found["permissions"][1]
    assert "update leases" in found["permissions"][1]


@need_bubblewrap
def test_the_isolation_is_described(tmp_path: Path) -> None:
    _, found = doctor("--root-dir", str(tmp_path / "root"), "--port", "0")
    result, words = found["runtime"]
    assert result == OK
    assert re.fullmatch(r"process; pods are isolated by bubblewrap [\d.]+ \(/.*/bwrap\)", words)
