"""A node in a few lines, as users would run it; and what it says when it cannot."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from podstatus.testing.apiserver import ApiServerThread
from podstatus.testing.servers.free_port import free_port
from tests.client.kubeconfigs import data
from tests.support.certificates import DAY, authority

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_node.py"
POD = "/api/v1/namespaces/default/pods/web"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/own-node"

SECONDS = 90
"""Timeout for things that take one or two seconds, on a busy machine."""

Edit = Callable[[dict[str, Any], Path], None]


@contextmanager
def own_node(kubeconfig: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the example until the end of the block."""
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLE), str(kubeconfig)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(look: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not look():
        assert time.monotonic() < end, f"it did not happen within {SECONDS} s"
        time.sleep(0.05)


def test_pods_of_a_node_of_ones_own_run_and_go(api_server: ApiServerThread) -> None:
    spec = {"nodeName": "own-node", "containers": [{"name": "app", "image": "app:1"}]}
    pod = {"metadata": {"name": "web"}, "spec": spec}

    def conditions() -> dict[str, str]:
        status = api_server.request("GET", POD)[1]["status"]
        return {c["type"]: c["status"] for c in status.get("conditions", [])}

    with own_node(api_server.kubeconfig) as process:
        assert process.stdout is not None
        assert "own-node is ready" in process.stdout.readline()
        api_server.request("POST", "/api/v1/namespaces/default/pods", pod)
        wait_for(lambda: conditions().get("Ready") == "True")
        assert api_server.request("GET", LEASE)[1]["spec"]["holderIdentity"] == "own-node"
        api_server.request("DELETE", POD)
        wait_for(lambda: api_server.request("GET", POD)[0] == 404)
        process.terminate()
        assert process.wait(SECONDS) == 0


def test_one_that_a_shell_started_aside_ends_too(api_server: ApiServerThread) -> None:
    """Ignores the interrupt that ends it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with own_node(api_server.kubeconfig) as process:
            assert process.stdout is not None
            assert "own-node is ready" in process.stdout.readline()
            process.terminate()
            assert process.wait(SECONDS) == 0
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_node_that_was_there_before_is_taken_over(api_server: ApiServerThread) -> None:
    api_server.request("POST", "/api/v1/nodes", {"metadata": {"name": "own-node"}})
    with own_node(api_server.kubeconfig) as process:
        assert process.stdout is not None
        assert "own-node is ready" in process.stdout.readline()
    node = api_server.get_object("nodes", "own-node")
    assert node is not None
    assert node["status"]["conditions"][0]["status"] == "True"


def no_file(_: dict[str, Any], path: Path) -> None:
    path.unlink()


def not_yaml(_: dict[str, Any], path: Path) -> None:
    path.write_text("{[")


def no_such_context(config: dict[str, Any], _: Path) -> None:
    config["current-context"] = "elsewhere"


def server(address: str) -> Edit:
    def edit(config: dict[str, Any], _: Path) -> None:
        config["clusters"][0]["cluster"]["server"] = address

    return edit


def another_authority(config: dict[str, Any], _: Path) -> None:
    cluster = config["clusters"][0]["cluster"]
    cluster.pop("certificate-authority", None)
    cluster["certificate-authority-data"] = data(authority().pem)


def expired_certificate(config: dict[str, Any], path: Path) -> None:
    pair = authority().pair("me", lasts=-DAY)
    own = path.parent / "own.pem"
    own.write_bytes(pair.certificate + pair.key)
    config["users"][0]["user"] = {"client-certificate": str(own), "client-key": str(own)}


def wrong_token(config: dict[str, Any], _: Path) -> None:
    config["users"][0]["user"] = {"token": "not-the-right-one"}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (no_file, "no kubeconfig at"),
        (not_yaml, "YAML"),
        (no_such_context, "elsewhere"),
        (server(f"https://127.0.0.1:{free_port()}"), "cannot connect to"),
        (server("https://nowhere.invalid"), "cannot resolve nowhere.invalid"),
        (another_authority, "signed by an unknown authority"),
        (expired_certificate, "expired"),
        (wrong_token, "did not accept the credentials"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_configuration_errors_are_reported_in_one_line(
    api_server: ApiServerThread, tmp_path: Path, edit: Edit, message: str
) -> None:
    path = tmp_path / "config"
    config = yaml.safe_load(api_server.kubeconfig.read_text())
    path.write_text(yaml.safe_dump(config))
    edit(config, path)
    if edit not in (no_file, not_yaml):
        path.write_text(yaml.safe_dump(config))
    assert_message(path, message)


def test_a_missing_permission_is_reported_in_one_line(api_server: ApiServerThread) -> None:
    api_server.inject({"verb": "create", "resource": "nodes", "code": 403})
    assert_message(api_server.kubeconfig, "(RBAC)")


def assert_message(kubeconfig: Path, message: str) -> None:
    with own_node(kubeconfig) as process:
        printed, line = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert printed == ""
    assert line.startswith("own_node: ")
    assert message in line
    assert line.count("\n") == 1
    assert "not-the-right-one" not in line
