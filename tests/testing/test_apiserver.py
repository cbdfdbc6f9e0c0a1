"""The fixtures that other projects use."""

import os
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from podstatus.apiserver.state_dir import StateDirLockedError
from podstatus.testing.apiserver import (
    ApiServerProcess,
    ApiServerThread,
    api_server,
    api_server_process,
    running_api_server,
)

__all__ = ["api_server", "api_server_process"]

MAPS = "/api/v1/namespaces/default/configmaps"
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}


def test_a_server_in_a_thread_serves_and_shows_what_it_stores(api_server: ApiServerThread) -> None:
    assert api_server.request("POST", MAPS, MAP)[0] == 201
    stored = api_server.get_object("configmaps", "a", "default")
    assert stored is not None
    assert stored["data"] == {"k": "v"}
    assert api_server.list_objects("configmaps", "default") == [stored]
    assert api_server.list_objects("configmaps", "kube-system") == []
    assert api_server.get_object("configmaps", "b", "default") is None


def test_what_clients_need_is_in_files(api_server: ApiServerThread) -> None:
    config = yaml.safe_load(api_server.kubeconfig.read_text())
    assert config["clusters"][0]["cluster"]["server"] == api_server.url
    assert config["users"][0]["user"]["token"] == api_server.token
    ssl.create_default_context(cafile=str(api_server.authority))
    assert stat.S_IMODE(api_server.kubeconfig.stat().st_mode) == 0o600


def test_faults_are_injected_and_bad_ones_refused(api_server: ApiServerThread) -> None:
    api_server.inject({"verb": "list", "code": 503})
    assert api_server.request("GET", MAPS)[0] == 503
    with pytest.raises(ValueError, match="the rule has no effect"):
        api_server.inject({"verb": "list"})


def test_each_server_has_objects_of_its_own(tmp_path: Path) -> None:
    with running_api_server(tmp_path / "1") as first, running_api_server(tmp_path / "2") as second:
        first.request("POST", MAPS, MAP)
        assert len(first.list_objects("configmaps")) == 1
        assert second.list_objects("configmaps") == []


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        running_api_server(tmp_path),
        pytest.raises(StateDirLockedError),
        running_api_server(tmp_path),
    ):
        pass


def test_a_killed_process_loses_nothing_that_was_acknowledged(
    api_server_process: ApiServerProcess,
) -> None:
    before = api_server_process.start()
    assert before.request("POST", MAPS, MAP)[0] == 201
    api_server_process.kill()
    with pytest.raises(OSError, match="refused"):
        before.request("GET", f"{MAPS}/a")
    after = api_server_process.start()
    assert (after.url, after.token) == (before.url, before.token)
    assert before.request("GET", f"{MAPS}/a")[1]["data"] == {"k": "v"}


def test_a_process_that_cannot_start_is_noticed(
    api_server_process: ApiServerProcess,
) -> None:
    folder = api_server_process.folder
    with running_api_server(folder), pytest.raises(RuntimeError, match="did not start"):
        api_server_process.start()


CONFTEST = 'pytest_plugins = ["podstatus.testing.apiserver"]\n'
THEIR_TEST = """
def test_version(api_server):
    assert api_server.request("GET", "/version")[0] == 200
"""


def test_another_project_uses_it_as_a_plugin(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_theirs.py").write_text(THEIR_TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    environment = {"PATH": os.environ["PATH"]}
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout
