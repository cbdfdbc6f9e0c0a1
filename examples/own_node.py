"""A custom node for any cluster: registers itself and syncs the status of the pods bound to it.

    python examples/own_node.py [KUBECONFIG]

Everything is real except for the containers: each is reported as running until its pod is deleted.
Replace `facts` by your runtime. Ctrl-C ends it; the Node stays, and soon becomes NotReady.
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import podstatus as ps
from podstatus import client as kube

NAME = "own-node"
MakeManager = Callable[[kube.HttpPodApi, ps.PodManager], ps.StatusManager]
Report = Callable[[ps.StatusManager, ps.PodManager], None]


async def put(
    client: kube.ApiClient, resource: kube.ApiResource, name: str, **content: Any
) -> None:
    """Create the Node or its Lease, or patch the existing one."""
    body = json.dumps({"metadata": {"name": name}, **content}).encode()
    namespace = "kube-node-lease" if resource.namespaced else None
    try:
        await client.create(resource, body, namespace=namespace)
    except ps.ConflictError:
        subresource = "" if resource.namespaced else "status"
        await client.patch(resource, name, body, namespace=namespace, subresource=subresource)


def stamp() -> str:
    """Return the current time as a Kubernetes MicroTime."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())


async def register(client: kube.ApiClient, name: str) -> None:
    """Register the Node with its capacity, and as Ready."""
    now = stamp()
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    ready |= {"lastHeartbeatTime": now, "lastTransitionTime": now}
    resources = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    status = {"conditions": [ready], "capacity": resources, "allocatable": resources}
    await put(client, kube.NODES, name, status=status)
    print(f"{name} is ready at {client.server}; try:\n", flush=True)
    flag = f"--kubeconfig {sys.argv[1]} " if sys.argv[1:] else ""
    overrides = f"""--overrides='{{"spec":{{"nodeName":"{name}"}}}}'"""
    print(f"    kubectl {flag}run web --image=x {overrides} -- sleep 60")


async def renew_lease(client: kube.ApiClient, name: str) -> None:
    """Renew the node's Lease every ten seconds."""
    while True:
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": stamp()}
        try:
            await put(client, kube.LEASES, name, spec=spec)
        except ps.ApiError as error:
            print(f"lease not renewed, will retry: {error}", file=sys.stderr)
        await asyncio.sleep(10)


def is_deleted(pod: ps.Pod) -> bool:
    """Return whether the deletion of the pod was requested."""
    return pod.metadata.deletion_timestamp is not None


def facts(pod: ps.Pod) -> ps.PodFacts:
    """Return the runtime's facts. Here all containers run until the pod is deleted."""
    state, reason = ps.ContainerRunState.RUNNING, ""
    if is_deleted(pod):
        state, reason = ps.ContainerRunState.EXITED, "Completed"
    containers = [
        ps.ContainerFacts(id=f"fake://{c.name}", name=c.name, state=state, reason=reason)
        for c in pod.spec.containers or ()
    ]
    return ps.PodFacts(containers=tuple(containers), ips=("10.1.2.3",))


class Safety:
    """Implements the port `DeletionSafety`: whether containers of a pod may still run."""

    def could_have_running_containers(self, pod: ps.Pod) -> bool:
        """Return whether the pod may have running containers."""
        return not is_deleted(pod)


def report(manager: ps.StatusManager, pods: ps.PodManager) -> None:
    """Report the facts of each pod to the manager."""
    for pod in pods.pods():
        now, old = ps.Time.from_unix_nanos(time.time_ns()), manager.pod_status(pod.uid)
        status = ps.generate_api_pod_status(pod, facts(pod), now=now, old_status=old)
        manager.set_pod_status(pod, status)
        if is_deleted(pod):
            manager.terminate_pod(pod)


async def run_node(name: str, kubeconfig: Path | None, make: MakeManager, report: Report) -> None:
    """Register a Node, and call `report` every second, in a thread."""
    pods = ps.PodManager()
    async with kube.ApiClient(kube.load_config(kubeconfig)) as client:
        await register(client, name)
        manager = make(kube.HttpPodApi(client), pods)
        watch = kube.pod_reflector(client, name, pods)
        async with asyncio.TaskGroup() as tasks:
            for service in (renew_lease(client, name), watch.run(), manager.run()):
                tasks.create_task(service)
            await watch.wait_synced()
            while True:
                try:
                    await asyncio.to_thread(report, manager, pods)
                except OSError as error:
                    print(f"runtime does not answer, will retry: {error}", file=sys.stderr)
                await asyncio.sleep(1)


def run_until_interrupted(node: Coroutine[Any, Any, None]) -> None:
    """Run a node until Ctrl-C or SIGTERM; report errors in one line."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # as Ctrl-C
    try:
        asyncio.run(node)
    except KeyboardInterrupt:
        print("stopped")
    except (kube.KubeconfigError, ps.ApiError) as error:
        sys.exit(f"{Path(sys.argv[0]).stem}: {error}")


def make_manager(api: kube.HttpPodApi, pods: ps.PodManager) -> ps.StatusManager:
    """Return the manager of this node."""
    return ps.StatusManager(api, pods, Safety())


if __name__ == "__main__":
    kubeconfig = Path(sys.argv[1]) if sys.argv[1:] else None
    run_until_interrupted(run_node(NAME, kubeconfig, make_manager, report))
