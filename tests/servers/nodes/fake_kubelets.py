"""Nodes that are only heartbeats, and pods that are only statuses."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from podstatus.kube.scalars.time import MicroTime, Time
from tests.servers.pods import created, pod, pods
from tests.support.processes.api_servers import MERGE, Client, Document, Server

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_PERIOD = 0.4
CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class FakeKubelets:
    """Registers nodes, and renews the Leases of those that live."""

    def __init__(self, server: Server) -> None:
        self._client = Client(server.access)
        self._renewing = Client(server.access)
        self._living: set[str] = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._renew)

    @classmethod
    @contextmanager
    def on(cls, server: Server) -> Iterator["FakeKubelets"]:
        made = cls(server)
        made._thread.start()
        try:
            yield made
        finally:
            made.stop()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._client.close()
        self._renewing.close()

    def register(self, name: str, *, ready: str = "True") -> None:
        """A Node with its Lease, which is renewed from now on."""
        body = {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"conditions": _conditions(ready), "allocatable": {"pods": "20"}},
        }
        created(self._client, "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node"} | body)
        lease = {"metadata": {"name": name}, "spec": _renewal() | {"leaseDurationSeconds": 4}}
        created(self._client, _LEASES, lease | _TYPE)
        self._living.add(name)

    def register_mute(self, name: str, *, zone: str) -> None:
        """A Node whose kubelet never does anything."""
        labels = {"topology.kubernetes.io/zone": zone}
        meta = {"name": name, "labels": labels}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": meta}
        created(self._client, "/api/v1/nodes", body)

    def die(self, *names: str) -> None:
        self._living -= set(names)

    def revive(self, name: str, *, ready: str = "True") -> None:
        """Heartbeats begin again, with a status."""
        self._living.add(name)
        self.report(name, ready)

    def report(self, name: str, ready: str) -> None:
        """Post a status."""
        path = f"/api/v1/nodes/{name}/status"
        code, answer = self._client.patch(path, {"status": {"conditions": _conditions(ready)}})
        assert code == 200, answer

    def run_pod(
        self, namespace: str, name: str, node: str, *, ready: str = "True", **spec: Any
    ) -> None:
        """A running pod of a node."""
        body = pod(name, node=node)
        body["spec"] |= {"terminationGracePeriodSeconds": 30} | spec
        created(self._client, pods(namespace), {"apiVersion": "v1", "kind": "Pod"} | body)
        self.report_pod(namespace, name, ready)

    def report_pod(self, namespace: str, name: str, ready: str) -> None:
        reason = {"reason": "ContainersNotReady"} if ready == "False" else {}
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": _now()} | reason
        change = {"status": {"phase": "Running", "conditions": [condition]}}
        code, answer = self._client.patch(pods(namespace, name, "status"), change)
        assert code == 200, answer

    def _renew(self) -> None:
        while not self._stopped.wait(_PERIOD):
            for name in sorted(self._living):
                code, answer = self._renewing.patch(
                    f"{_LEASES}/{name}", {"spec": _renewal()}, MERGE
                )
                assert code == 200, answer


_TYPE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}


def _renewal() -> Document:
    return {"renewTime": MicroTime.from_unix_nanos(time.time_ns()).wire}


def _now() -> str | None:
    return Time.from_unix_nanos(time.time_ns()).wire


def _conditions(ready: str) -> list[Document]:
    now = _now()
    statuses = dict.fromkeys(CONDITIONS, "False") | {"Ready": ready}
    return [
        {
            "type": kind,
            "status": status,
            "reason": f"Kubelet{kind}",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for kind, status in statuses.items()
    ]
