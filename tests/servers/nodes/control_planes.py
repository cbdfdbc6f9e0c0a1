"""The two control planes: the embedded server, and kube-apiserver with kube-controller-manager."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy
from podstatus.testing.apiserver import running_api_server
from podstatus.testing.servers.binaries import E2E_PREFIX, cache_dir
from podstatus.testing.servers.etcd import start_program, wait_until_ready
from tests.support.processes.api_servers import EmbeddedServer, Kind, Server, own_real_server
from tests.support.processes.process_node import skip

POLICY = NodeMonitorPolicy(
    node_monitor_period=0.5,
    node_monitor_grace_period=4,
    node_startup_grace_period=6,
    node_eviction_rate=20,
)
"""In a hurry; the heartbeats of the tests are ten times as frequent as needed."""
_CONTROLLERS = (
    "node-lifecycle-controller,taint-eviction-controller,pod-garbage-collector-controller"
)
_START_SECONDS = 90.0


def find_controller_manager() -> Path | None:
    """The newest that `make e2e-parts` has built."""
    found = cache_dir().glob(f"{E2E_PREFIX}*/kube-controller-manager")
    return max(found, key=lambda path: path.stat().st_mtime_ns, default=None)


@contextmanager
def control_plane(kind: Kind, folder: Path, policy: NodeMonitorPolicy = POLICY) -> Iterator[Server]:
    """A control plane that no other test uses."""
    if kind == "real":
        if find_controller_manager() is None:
            skip("no kube-controller-manager; run make e2e-parts")
        with own_real_server(folder / "real") as real, _manager(real, folder, policy):
            yield real
        return
    with running_api_server(folder / "embedded", schedule=True, node_monitor=policy) as running:
        server = EmbeddedServer(running)
        yield server
        server.close()


@contextmanager
def _manager(server: Server, folder: Path, policy: NodeMonitorPolicy) -> Iterator[None]:
    program = find_controller_manager()
    assert program is not None, "run make e2e-parts"
    flags: dict[str, Any] = {
        "kubeconfig": server.access.kubeconfig,
        "authentication-kubeconfig": server.access.kubeconfig,
        "authorization-kubeconfig": server.access.kubeconfig,
        "bind-address": "127.0.0.1",
        "secure-port": 0,
        "leader-elect": "false",
        "controllers": _CONTROLLERS,
        "node-monitor-period": f"{policy.node_monitor_period}s",
        "node-monitor-grace-period": f"{policy.node_monitor_grace_period}s",
        "node-startup-grace-period": f"{policy.node_startup_grace_period}s",
        "node-eviction-rate": policy.node_eviction_rate,
    }
    log = folder / "kube-controller-manager.log"
    process = start_program([program, *(f"--{k}={v}" for k, v in flags.items())], log)
    try:
        wait_until_ready(
            lambda: "Starting node controller" in log.read_text(),
            process,
            "the manager",
            _START_SECONDS,
        )
        yield
    finally:
        process.end(signal.SIGTERM, grace=10.0)
