"""`podstatus apiserver` as a process: start, banner, errors, stop."""

import base64
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.support.processes.programs import COMMAND, ApiServerProcess, api_server

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parents[2] / "src"


def opened(server: ApiServerProcess, path: str, body: dict[str, Any] | None = None) -> Any:
    """The answer to a client that has only the kubeconfig."""
    kubeconfig = yaml.safe_load(server.kubeconfig.read_text())
    cluster = kubeconfig["clusters"][0]["cluster"]
    token = kubeconfig["users"][0]["user"]["token"]
    trusted = base64.b64decode(cluster["certificate-authority-data"]).decode()
    authority = ssl.create_default_context(cadata=trusted)
    request = urllib.request.Request(  # noqa: S310 - the URL is our server's
        cluster["server"] + path,
        data=json.dumps(body).encode() if body else None,
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    return urllib.request.urlopen(request, context=authority, timeout=60)  # noqa: S310


def ask(server: ApiServerProcess, path: str, body: dict[str, Any] | None = None) -> str:
    """The whole of an answer."""
    with opened(server, path, body) as answer:
        text: str = answer.read().decode()
        return text


def test_the_kubeconfig_is_all_that_a_client_needs(tmp_path: Path) -> None:
    with api_server("--root-dir", str(tmp_path / "a server")) as server:
        assert server.kubeconfig == tmp_path / "a server" / "kubeconfig"
        assert json.loads(ask(server, "/api"))["versions"] == ["v1"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_cleanly_on_a_signal(number: int) -> None:
    with api_server() as server:
        assert server.end(number) == (0, "")


def test_it_does_not_wait_for_those_who_watch() -> None:
    with api_server() as server, opened(server, "/api/v1/namespaces?watch=true") as watch:
        assert json.loads(watch.readline())["type"] == "ADDED"
        assert server.end() == (0, "")


def test_in_memory_nothing_is_left_behind() -> None:
    with api_server() as server:
        folder = server.kubeconfig.parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        server.end()
        assert not folder.exists()


def test_clients_of_a_folder_can_come_back_after_a_restart(tmp_path: Path) -> None:
    root = ("--root-dir", str(tmp_path))
    with api_server(*root) as server:
        before = yaml.safe_load(server.kubeconfig.read_text())
        server.end()
    with api_server(*root) as server:
        after = yaml.safe_load(server.kubeconfig.read_text())
        assert after["users"] == before["users"]
        for kubeconfig in (before, after):
            kubeconfig["clusters"][0]["cluster"].pop("server")
        assert after["clusters"] == before["clusters"]


def test_a_killed_server_has_lost_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    root = ("--root-dir", str(tmp_path))
    named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}}
    with api_server(*root) as server:
        created = json.loads(ask(server, "/api/v1/namespaces", named))
        server.end(signal.SIGKILL)
    with api_server(*root) as server:
        assert json.loads(ask(server, "/api/v1/namespaces/kept")) == created


def test_faults_can_be_asked_for_only_if_allowed() -> None:
    with api_server("--faults") as server:
        assert ask(server, "/podstatus/faults") == "[]"
    with api_server() as server, pytest.raises(urllib.error.HTTPError, match="404"):
        ask(server, "/podstatus/faults")


def test_a_port_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with api_server("--port", port) as server:
            code, errors = server.wait()
    assert code == 1
    assert errors == (
        f"podstatus: cannot listen on 127.0.0.1 port {port}: the port is in use; stop the process "
        "that uses it, or pass another --port (0 picks a free one)\n"
    )


def test_an_address_of_another_machine_is_reported() -> None:
    with api_server("--host", "192.0.2.1") as server:
        code, errors = server.wait()
    assert code == 1
    assert errors.startswith("podstatus: cannot listen on 192.0.2.1 port 0: ")
    assert "--host" in errors


def test_a_directory_in_use_is_reported(tmp_path: Path) -> None:
    root = ("--root-dir", str(tmp_path))
    with api_server(*root), api_server(*root) as second:
        code, errors = second.wait()
    assert code == 1
    assert errors.startswith(f"podstatus: {tmp_path} is in use by another API server")


def test_a_directory_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with api_server("--root-dir", str(tmp_path / "file" / "sub")) as server:
        code, errors = server.wait()
    assert code == 1
    assert errors.startswith(f"podstatus: cannot use {tmp_path}/file/sub: ")


def test_it_can_listen_on_the_other_loopback_address() -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    with api_server("--host", "::1") as server:
        assert "serving https://[::1]:" in server.told
        assert ask(server, "/readyz") == "ok"


def test_without_the_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    script = f"import sys; sys.path[:0] = {[str(SOURCES), str(tmp_path)]}\n{COMMAND[-1]}"
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert "pip install 'podstatus[agent]'" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_help_names_the_commands() -> None:
    ran = subprocess.run(
        [*COMMAND, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"TERM": "dumb", "NO_COLOR": "1"},
    )
    assert "apiserver" in ran.stdout


def test_an_empty_folder_name_is_not_taken_for_this_folder(tmp_path: Path) -> None:
    code = "from podstatus.cli.main import main; main()"
    command = [sys.executable, "-c", code, "apiserver", "--root-dir", ""]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "--root-dir is empty; pass a directory" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_node_is_unknown_after_the_grace_that_was_set() -> None:
    periods = ("--node-monitor-grace-period", "1s", "--node-monitor-period", "100ms")
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "silent"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    with api_server(*periods) as server:
        ask(server, "/api/v1/nodes", node)
        with opened(server, "/api/v1/nodes?watch=1") as events:
            nodes = (json.loads(line)["object"] for line in events)
            statuses = (it["status"]["conditions"][0]["status"] for it in nodes)
            assert next(status for status in statuses if status != "True") == "Unknown"


@pytest.mark.parametrize(
    ("flag", "text"), [("--node-monitor-grace-period", "0s"), ("--node-monitor-period", "soon")]
)
def test_a_duration_that_is_none_is_refused(flag: str, text: str) -> None:
    ended = subprocess.run(
        [*COMMAND, "apiserver", f"{flag}={text}"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"podstatus: {flag}")
