"""Sync the status of a pod to an API server that kubectl can use.

Everything is real except for the container: the embedded API server on its own port with TLS and
a token, HTTP, a watch, the status manager. The container is simulated, and its readiness changes
every few seconds. With `--forever` it runs until Ctrl-C.
"""

import asyncio
import json
import signal
import sys
import tempfile
import time
from pathlib import Path

from podstatus import (
    ContainerFacts,
    ContainerRunState,
    Pod,
    PodFacts,
    PodManager,
    ProbeResults,
    SandboxFacts,
    SandboxState,
    StatusManager,
    Time,
    generate_api_pod_status,
)
from podstatus.client import PODS, ApiClient, HttpPodApi, kubeconfig_config, pod_reflector
from podstatus.testing.apiserver import ApiAccess, running_api_server

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {
        "nodeName": "laptop",
        "containers": [
            {"name": "app", "image": "app:1", "readinessProbe": {"tcpSocket": {"port": 80}}}
        ],
    },
}


class NothingElseRuns:
    """Implements the port `DeletionSafety`: there are no processes to wait for."""

    def could_have_running_containers(self, pod: Pod) -> bool:  # noqa: ARG002
        """Return False: no containers run."""
        return False


class PrintingPodManager(PodManager):
    """A pod manager that prints each update from the API server."""

    def update_pod(self, pod: Pod) -> None:
        """Store the pod and print its status."""
        super().update_pod(pod)
        true = [c.type for c in pod.status.conditions or () if c.status == "True"]
        print(f"{pod.name}: {pod.status.phase:<9}true: {', '.join(true) or 'nothing'}", flush=True)


async def keep(client: ApiClient, seconds: float) -> None:
    """Run the manager for `seconds`, and report the pod periodically."""
    pods = PrintingPodManager()
    manager = StatusManager(HttpPodApi(client), pods, NothingElseRuns())
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(pod_reflector(client, "laptop", pods).run())
        running = tasks.create_task(manager.run())
        end = time.monotonic() + seconds
        began = now()
        while time.monotonic() < end:
            for pod in pods.pods():
                report(manager, pod, began)
            await asyncio.sleep(0.2)
        manager.stop()
        await running
        watching.cancel()


def report(manager: StatusManager, pod: Pod, began: Time) -> None:
    """Report the container as running, and as ready for three seconds out of five."""
    app = ContainerFacts(
        id="fake://1", name="app", state=ContainerRunState.RUNNING, started_at=began
    )
    sandbox = SandboxFacts(id="box-1", state=SandboxState.READY, ip="10.1.2.3")
    status = generate_api_pod_status(
        pod,
        PodFacts(sandboxes=(sandbox,), containers=(app,), ips=("10.1.2.3",)),
        now=now(),
        old_status=manager.pod_status(pod.uid),
        prober=ProbeResults(ready={"fake://1": time.monotonic() % 5 > 2}),
        host_ips=("127.0.0.1",),
    )
    manager.set_pod_status(pod, status)


def now() -> Time:
    """Return the current wall-clock time."""
    return Time.from_unix_nanos(time.time_ns())


async def main(server: ApiAccess, seconds: float) -> None:
    """Create the pod and sync its status for `seconds`."""
    async with ApiClient(kubeconfig_config(server.kubeconfig)) as client:
        await client.create(PODS, json.dumps(POD).encode(), namespace="default")
        await keep(client, seconds)


def announce(server: ApiAccess) -> None:
    """Print commands for another terminal."""
    print(f"serving {server.url}; try from another terminal:\n")
    print(f"    kubectl --kubeconfig {server.kubeconfig} get pods -o wide -w")
    print(f"    kubectl --kubeconfig {server.kubeconfig} describe pod web")
    print(
        f"    curl --cacert {server.authority} -H @{server.folder}/header "
        f"{server.url}/api/v1/namespaces/default/pods/web"
    )
    header = server.folder / "header"
    header.touch(mode=0o600)
    header.write_text(f"Authorization: Bearer {server.token}\n")
    print("\nstatus on the API server, as it changes:", flush=True)


if __name__ == "__main__":
    forever = "--forever" in sys.argv
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # as Ctrl-C
    with tempfile.TemporaryDirectory() as folder, running_api_server(Path(folder)) as api:
        announce(api)
        try:
            asyncio.run(main(api, float("inf") if forever else 6))
        except KeyboardInterrupt:
            print("\nstopped")
