"""Keep the status of a pod true in an API server that kubectl can talk to.

Everything is real but the container: the embedded API server on a port of its own with TLS and
a token, HTTP, a watch, the status manager. The container is only said to run, and its readiness
changes every few seconds. With `--forever` it goes on until Ctrl-C.
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
    """The port `DeletionSafety`: here nothing is left running, ever."""

    def could_have_running_containers(self, pod: Pod) -> bool:  # noqa: ARG002
        """It has none."""
        return False


class ShownPods(PodManager):
    """The directory, which also says what the API server shows."""

    def update_pod(self, pod: Pod) -> None:
        """Put a pod into the directory, and say what it is."""
        super().update_pod(pod)
        true = [c.type for c in pod.status.conditions or () if c.status == "True"]
        print(f"{pod.name}: {pod.status.phase:<9}true: {', '.join(true) or 'nothing'}", flush=True)


async def keep(client: ApiClient, seconds: float) -> None:
    """Run the manager, and report the pod again and again."""
    pods = ShownPods()
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
    """Say how the container is: it runs, and is ready for three seconds out of five."""
    app = ContainerFacts(
        id="fake://1", name="app", state=ContainerRunState.RUNNING, started_at=began
    )
    box = SandboxFacts(id="box-1", state=SandboxState.READY, ip="10.1.2.3")
    status = generate_api_pod_status(
        pod,
        PodFacts(sandboxes=(box,), containers=(app,), ips=("10.1.2.3",)),
        now=now(),
        old_status=manager.pod_status(pod.uid),
        prober=ProbeResults(ready={"fake://1": time.monotonic() % 5 > 2}),
        host_ips=("127.0.0.1",),
    )
    manager.set_pod_status(pod, status)


def now() -> Time:
    """The time by this machine's clock."""
    return Time.from_unix_nanos(time.time_ns())


async def main(server: ApiAccess, seconds: float) -> None:
    """Create the pod and keep its status."""
    async with ApiClient(kubeconfig_config(server.kubeconfig)) as client:
        await client.create(PODS, json.dumps(POD).encode(), namespace="default")
        await keep(client, seconds)


def announce(server: ApiAccess) -> None:
    """Say how to look."""
    print(f"serving {server.url}; look at it from another terminal:\n")
    print(f"    kubectl --kubeconfig {server.kubeconfig} get pods -o wide -w")
    print(f"    kubectl --kubeconfig {server.kubeconfig} describe pod web")
    print(
        f"    curl --cacert {server.authority} -H @{server.folder}/header "
        f"{server.url}/api/v1/namespaces/default/pods/web"
    )
    header = server.folder / "header"
    header.touch(mode=0o600)
    header.write_text(f"Authorization: Bearer {server.token}\n")
    print("\nwhat the API server shows, as it changes:", flush=True)


if __name__ == "__main__":
    forever = "--forever" in sys.argv
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts aside ignores it
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # as Ctrl-C
    with tempfile.TemporaryDirectory() as folder, running_api_server(Path(folder)) as api:
        announce(api)
        try:
            asyncio.run(main(api, float("inf") if forever else 6))
        except KeyboardInterrupt:
            print("\nstopped")
