"""A node of your own in any cluster: register it, and keep the status of the pods bound to it.

    python examples/own_node.py [KUBECONFIG]

Everything is real but the containers: each is said to run until its pod is to go. Put your runtime
in place of `facts`. Ctrl-C ends it; the Node stays, and a cluster soon finds it NotReady.
"""

import asyncio
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import podstatus as ps
from podstatus import client as kube

NAME = "own-node"


async def put(client: kube.ApiClient, resource: kube.ApiResource, **content: Any) -> None:
    """Create the Node or its Lease, or patch what is there already."""
    body = json.dumps({"metadata": {"name": NAME}, **content}).encode()
    where = "kube-node-lease" if resource.namespaced else None
    try:
        await client.create(resource, body, namespace=where)
    except ps.ConflictError:
        part = "" if resource.namespaced else "status"
        await client.patch(resource, NAME, body, namespace=where, subresource=part)


def stamp() -> str:
    """The time, as Kubernetes writes it with microseconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())


async def register(client: kube.ApiClient) -> None:
    """Say that there is a node, how large it is, and that it is ready."""
    now = stamp()
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    ready |= {"lastHeartbeatTime": now, "lastTransitionTime": now}
    room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    status = {"conditions": [ready], "capacity": room, "allocatable": room}
    await put(client, kube.NODES, status=status)
    print(f"{NAME} is ready at {client.server}; try:\n", flush=True)
    way = f"--kubeconfig {sys.argv[1]} " if sys.argv[1:] else ""
    print(
        f"""    kubectl {way}run web --image=x --overrides='{{"spec":{{"nodeName":"{NAME}"}}}}'"""
    )


async def live(client: kube.ApiClient) -> None:
    """Say every ten seconds that the node is alive."""
    while True:
        spec = {"holderIdentity": NAME, "leaseDurationSeconds": 40, "renewTime": stamp()}
        try:
            await put(client, kube.LEASES, spec=spec)
        except ps.ApiError as error:
            print(f"lease not renewed, will retry: {error}", file=sys.stderr)
        await asyncio.sleep(10)


def is_to_go(pod: ps.Pod) -> bool:
    """Whether somebody has deleted the pod."""
    return pod.metadata.deletion_timestamp is not None


def facts(pod: ps.Pod) -> ps.PodFacts:
    """What your runtime knows. This one has everything running until the pod is to go."""
    state, reason = ps.ContainerRunState.RUNNING, ""
    if is_to_go(pod):
        state, reason = ps.ContainerRunState.EXITED, "Completed"
    containers = [
        ps.ContainerFacts(id=f"fake://{c.name}", name=c.name, state=state, reason=reason)
        for c in pod.spec.containers or ()
    ]
    return ps.PodFacts(containers=tuple(containers), ips=("10.1.2.3",))


class Safety:
    """The port `DeletionSafety`: whether something of a pod may still run."""

    def could_have_running_containers(self, pod: ps.Pod) -> bool:
        """All is over as soon as the pod is to go."""
        return not is_to_go(pod)


async def report(manager: ps.StatusManager, pods: ps.PodManager) -> None:
    """Tell the manager every second what is known of each pod."""
    while True:
        for pod in pods.pods():
            now, old = ps.Time.from_unix_nanos(time.time_ns()), manager.pod_status(pod.uid)
            status = ps.generate_api_pod_status(pod, facts(pod), now=now, old_status=old)
            manager.set_pod_status(pod, status)
            if is_to_go(pod):
                manager.terminate_pod(pod)
        await asyncio.sleep(1)


async def main(kubeconfig: Path | None) -> None:
    """Be a node until interrupted."""
    pods = ps.PodManager()
    async with kube.ApiClient(kube.load_config(kubeconfig)) as client:
        await register(client)
        manager = ps.StatusManager(kube.HttpPodApi(client), pods, Safety())
        watch = kube.pod_reflector(client, NAME, pods)
        async with asyncio.TaskGroup() as tasks:
            for work in (live(client), watch.run(), manager.run(), report(manager, pods)):
                tasks.create_task(work)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts aside ignores it
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # as Ctrl-C
    try:
        asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else None))
    except KeyboardInterrupt:
        print("stopped")
    except (kube.KubeconfigError, ps.ApiError) as error:
        sys.exit(f"own_node: {error}")
