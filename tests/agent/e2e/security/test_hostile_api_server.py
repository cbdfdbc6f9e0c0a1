"""A whole agent with a lying API server: it keeps running, and recovers afterwards."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from podstatus.testing.apiserver import ApiServerProcess
from tests.support.processes.agent_process import AgentProcess, Cluster, agent, get_plain, make_pod
from tests.support.processes.hostile_proxy import HostileProxy, hostile_proxy

pytestmark = pytest.mark.slow

HOSTILE_SECONDS = 6.0
MEMORY = 100 << 20
"""Bytes that an agent may have more of afterwards; one that keeps what it is sent has gigabytes."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    server = ApiServerProcess(tmp_path / "server", schedule=True)
    try:
        yield Cluster(server.start())
    finally:
        server.stop()


def kubeconfig_of(proxy: HostileProxy, path: Path) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": proxy.url}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "users": [{"name": "x", "user": {}}],
    }
    path.write_text(json.dumps(document))
    return path


def memory_of(made: AgentProcess) -> int:
    return sum(process.memory_info().rss for process in made.family())


def live(made: AgentProcess, cluster: Cluster) -> None:
    """Pods come and go for a while; the agent answers each time."""
    health = made.endpoints()["health"]
    until, number = time.monotonic() + HOSTILE_SECONDS, 0
    while time.monotonic() < until:
        number += 1
        cluster.create(make_pod(f"pod-{number}", "exit: 1" if number % 2 else ""))
        if number > 5:
            cluster.delete(f"pod-{number - 5}")
        assert get_plain(f"{health}/healthz/ping")[0] == 200
        assert made.process is not None
        assert made.process.poll() is None, made.log()[-5000:]
        time.sleep(0.1)


@pytest.mark.parametrize("seed", [1])
def test_a_server_that_lies_is_survived(cluster: Cluster, tmp_path: Path, seed: int) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "static.json").write_text(json.dumps(make_pod("static")))
    options = ("--pod-manifest-path", str(tmp_path / "manifests"))
    often = ("--node-status-update-frequency", "1s")
    with hostile_proxy(cluster.access, seed, share=0.5) as proxy:
        kubeconfig = kubeconfig_of(proxy, tmp_path / "kubeconfig")
        with agent(tmp_path / "agent", *options, *often, kubeconfig=kubeconfig) as made:
            made.start()
            made.wait_serving()
            made.wait_ready(cluster)
            before = memory_of(made)
            proxy.hostile = True
            live(made, cluster)
            assert memory_of(made) - before < MEMORY
            proxy.hostile = False
            cluster.create(make_pod("afterwards"))
            (tmp_path / "manifests" / "later.json").write_text(json.dumps(make_pod("later")))
            cluster.wait_ready("afterwards", "later-node-e")
            assert sum(proxy.done.values()) > 10
            began = time.monotonic()
            assert made.stop() == 0
            assert time.monotonic() - began < 60
            assert "Traceback" not in made.log()
