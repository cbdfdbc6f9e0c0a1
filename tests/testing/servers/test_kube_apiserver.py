"""The harness around a real kube-apiserver: guarantees, and errors of failed starts."""

import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="the harness needs podstatus[agent]")

from podstatus.testing.servers import etcd
from podstatus.testing.servers.binaries import MissingBinariesError, ServerBinaries
from podstatus.testing.servers.etcd import StartError
from podstatus.testing.servers.kube_apiserver import KubeApiServer
from tests.testing.servers.process_state import ended, linux_only

MAPS = "/api/v1/namespaces/default/configmaps"
MAP = {"metadata": {"name": "a"}, "data": {"k": "v"}}
real = [pytest.mark.servers, pytest.mark.real_server]

SERVING_ETCD = """
import http.server, sys, urllib.parse
url = next(a for a in sys.argv if a.startswith("--listen-client-urls=")).partition("=")[2]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"leader": "1"}')
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", urllib.parse.urlsplit(url).port), Handler).serve_forever()
"""
DYING = "import sys; sys.exit('the disk is on fire')"
SILENT = "import time; time.sleep(600)"


def program(path: Path, source: str) -> Path:
    """Write an executable Python program."""
    path.write_text(f"#!{sys.executable}\n{source}")
    path.chmod(0o755)
    return path


def server_of(folder: Path, *, etcd: str, kube_apiserver: str) -> KubeApiServer:
    """Return a harness around fake programs."""
    parts = ServerBinaries(
        etcd=program(folder / "etcd-program", etcd),
        kube_apiserver=program(folder / "server-program", kube_apiserver),
    )
    return KubeApiServer(folder / "server", binaries=parts)


def test_an_etcd_that_dies_is_named_with_its_last_words(tmp_path: Path) -> None:
    server = server_of(tmp_path, etcd=DYING, kube_apiserver=DYING)
    with pytest.raises(
        StartError, match=r"(?s)^etcd exited before it was ready.*the disk is on fire$"
    ):
        server.start()
    assert server.pids == []


def test_an_etcd_that_does_not_serve_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd, "_START_SECONDS", 0.1)
    server = server_of(tmp_path, etcd=SILENT, kube_apiserver=DYING)
    with pytest.raises(StartError, match=r"etcd was not ready within 0 s"):
        server.start()
    assert server.pids == []


@linux_only
def test_a_server_that_dies_takes_its_etcd_along(tmp_path: Path) -> None:
    tells = f"import os; print('etcd is', os.getpid(), file=open({str(tmp_path / 'pid')!r}, 'w'))\n"
    server = server_of(tmp_path, etcd=tells + SERVING_ETCD, kube_apiserver=DYING)
    with pytest.raises(StartError, match=r"(?s)^kube-apiserver exited .*the disk is on fire$"):
        server.start()
    assert server.pids == []
    assert ended(int((tmp_path / "pid").read_text().split()[-1]))


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    parts = ServerBinaries(etcd=tmp_path / "no-etcd", kube_apiserver=tmp_path / "no-server")
    with pytest.raises(
        StartError, match=r"cannot start .*no-etcd: no such file.*test-against-kube"
    ):
        KubeApiServer(tmp_path / "server", binaries=parts).start()


def test_without_the_programs_there_is_no_harness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    with pytest.raises(MissingBinariesError, match="KUBEBUILDER_ASSETS"):
        KubeApiServer(tmp_path / "server")


def test_what_does_not_run_cannot_be_paused_or_compacted(tmp_path: Path) -> None:
    server = server_of(tmp_path, etcd=DYING, kube_apiserver=DYING)
    for act in (server.pause, server.resume, server.compact):
        with pytest.raises(RuntimeError, match=r"start\(\) it first"):
            act()
    server.kill()
    server.stop()


class TestReal:
    pytestmark = real

    def test_a_taken_port_is_said(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            server = KubeApiServer(tmp_path, port=port)
            with pytest.raises(StartError, match="address already in use"):
                server.start()
        assert server.pids == []

    def test_it_comes_back_with_the_same_address_and_objects(self, tmp_path: Path) -> None:
        server = KubeApiServer(tmp_path, nodes=["node-a"])
        try:
            before = server.start()
            assert before.request("POST", MAPS, MAP)[0] == 201
            with pytest.raises(RuntimeError, match="is already running"):
                server.start()
            server.kill()
            with pytest.raises(OSError, match="refused"):
                before.request("GET", f"{MAPS}/a")
            server.start()
            assert before.request("GET", f"{MAPS}/a")[1]["data"] == MAP["data"]
            server.stop()
            assert server.pids == []
            after = server.start()
            assert (after.url, after.token) == (before.url, before.token)
            assert before.request("GET", f"{MAPS}/a")[0] == 200
        finally:
            server.stop()

    def test_it_stands_still_and_goes_on(self, tmp_path: Path) -> None:
        server = KubeApiServer(tmp_path)
        try:
            connection = server.start().connect()
            connection.timeout = 0.2
            server.pause()
            with pytest.raises(TimeoutError):
                connection.request("GET", "/version")
            server.resume()
            assert server.access.request("GET", "/version")[0] == 200
            server.pause()
        finally:
            server.stop()
        assert server.pids == []

    def test_secrets_are_their_owners_alone(self, tmp_path: Path) -> None:
        server = KubeApiServer(tmp_path, nodes=["node-a"])
        server.start()
        server.stop()
        tokens = [server.access.token, server.node_access("node-a").token]
        assert len(set(tokens)) == 2
        for file in (path for path in tmp_path.rglob("*") if path.is_file()):
            shows = any(token in file.read_text(errors="replace") for token in tokens)
            if shows or file.suffix == ".key":
                assert stat.S_IMODE(file.stat().st_mode) == 0o600, file

    @linux_only
    def test_no_process_is_left_when_the_parent_is_killed(self, tmp_path: Path) -> None:
        starter = f"""
import sys
from pathlib import Path
from podstatus.testing.servers.kube_apiserver import KubeApiServer
server = KubeApiServer(Path({str(tmp_path)!r}))
server.start()
print(*server.pids, flush=True)
sys.stdin.read()
"""
        process = subprocess.Popen(
            [sys.executable, "-c", starter],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) == 2
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert all(map(ended, pids))
