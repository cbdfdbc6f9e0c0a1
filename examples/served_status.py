"""Keep the status of a pod true in an API server that kubectl can talk to.

Everything is real but the container: the embedded API server on a port of its own with TLS and
a token, HTTP, a watch, the status manager. The container is only said to run, and its readiness
changes every few seconds. With `--forever` it goes on until Ctrl-C.
"""

import asyncio
import signal
import ssl
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from podstatus import (
    ContainerFacts,
    ContainerRunState,
    Pod,
    PodDirectory,
    PodFacts,
    ProbeVerdicts,
    SandboxFacts,
    SandboxState,
    StatusManager,
    Time,
    api_error,
    decode,
    generate_api_pod_status,
)
from podstatus.testing.apiserver import ApiAccess, running_api_server

PODS = "/api/v1/namespaces/default/pods"
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
PATCH = "application/strategic-merge-patch+json"


class HttpPodApi:
    """The port `PodApi` over HTTP."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """Read one pod."""
        return decode(await self._call("GET", namespace, name), Pod)

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        """Patch the `status` subresource; the UID in the patch must be the pod's."""
        headers = {"Content-Type": PATCH}
        body = await self._call("PATCH", namespace, f"{name}/status", data=patch, headers=headers)
        return decode(body, Pod)

    async def delete_pod(
        self, namespace: str, name: str, *, uid: str, grace_period_seconds: int
    ) -> None:
        """Delete the pod, if it still is the one with this UID."""
        options = {"gracePeriodSeconds": grace_period_seconds, "preconditions": {"uid": uid}}
        await self._call("DELETE", namespace, name, json=options)

    async def _call(self, method: str, namespace: str, rest: str, **body: Any) -> bytes:
        path = f"/api/v1/namespaces/{namespace}/pods/{rest}"
        async with self._session.request(method, path, **body) as response:
            answered = await response.read()
            if response.status >= 400:
                why = msgspec.json.decode(answered).get("message", "")
                raise api_error(response.status, f"{method} {path}: {why}")
            return answered


class NothingElseRuns:
    """The port `DeletionSafety`: here nothing is left running, ever."""

    def could_have_running_containers(self, pod: Pod) -> bool:  # noqa: ARG002
        """It has none."""
        return False


async def watch(session: aiohttp.ClientSession, pods: PodDirectory) -> None:
    """Put what the API server shows into the directory, and say what it is."""
    ours = f"{PODS}?watch=1&fieldSelector=spec.nodeName%3Dlaptop"
    async with session.get(ours, timeout=aiohttp.ClientTimeout(total=None)) as response:
        async for line in response.content:
            event = msgspec.json.decode(line)
            pod = decode(msgspec.json.encode(event["object"]), Pod)
            (pods.remove_pod if event["type"] == "DELETED" else pods.update_pod)(pod)
            true = [c.type for c in pod.status.conditions or () if c.status == "True"]
            print(f"{event['type']:<9}{pod.status.phase:<9}true: {', '.join(true) or 'nothing'}")


async def keep(session: aiohttp.ClientSession, seconds: float) -> None:
    """Run the manager, and report the pod again and again."""
    pods = PodDirectory()
    manager = StatusManager(HttpPodApi(session), pods, NothingElseRuns())
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(watch(session, pods))
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
        prober=ProbeVerdicts(ready={"fake://1": time.monotonic() % 5 > 2}),
        host_ips=("127.0.0.1",),
    )
    manager.set_pod_status(pod, status)


def now() -> Time:
    """The time by this machine's clock."""
    return Time.from_unix_nanos(time.time_ns())


async def main(server: ApiAccess, seconds: float) -> None:
    """Create the pod and keep its status."""
    trust = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(server.authority)))
    headers = {"Authorization": f"Bearer {server.token}"}
    async with aiohttp.ClientSession(server.url, connector=trust, headers=headers) as session:
        async with session.post(PODS, json=POD) as created:
            created.raise_for_status()
        await keep(session, seconds)


def announce(server: ApiAccess) -> None:
    """Say how to look."""
    print(f"serving {server.url}; look at it from another terminal:\n")
    print(f"    kubectl --kubeconfig {server.kubeconfig} get pods -o wide -w")
    print(f"    kubectl --kubeconfig {server.kubeconfig} describe pod web")
    print(f"    curl --cacert {server.authority} -H @{server.folder}/header {server.url}{PODS}/web")
    header = server.folder / "header"
    header.touch(mode=0o600)
    header.write_text(f"Authorization: Bearer {server.token}\n")
    print("\nwhat the API server shows, as it changes:", flush=True)


if __name__ == "__main__":
    forever = "--forever" in sys.argv
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the same end as Ctrl-C
    with tempfile.TemporaryDirectory() as folder, running_api_server(Path(folder)) as api:
        announce(api)
        try:
            asyncio.run(main(api, float("inf") if forever else 6))
        except KeyboardInterrupt:
            print("\nstopped")
