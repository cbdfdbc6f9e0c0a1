"""The contender with podstatus' own manager and client, as a node runs them."""

import asyncio
import contextlib
import time

from peers.node_pods import NothingRuns, flipped, is_ready, way_in
from peers.orders import Flip, Lines, Report, Set, Start, Started
from podstatus import Pod, PodManager, StatusManager, SyncPolicy
from podstatus.client import ApiClient, HttpPodApi, pod_reflector
from podstatus.kube.objects.pod import ApiUID
from podstatus.status.ports import PodApi


class CountedPodApi:
    """A `PodApi` that counts requests."""

    def __init__(self, pods: PodApi) -> None:
        self.requests = 0
        self._pods = pods

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """Return the pod with this name."""
        self.requests += 1
        return await self._pods.get_pod(namespace, name)

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        """Patch the status of a pod."""
        self.requests += 1
        return await self._pods.patch_pod_status(namespace, name, patch)

    async def delete_pod(
        self, namespace: str, name: str, *, uid: ApiUID, grace_period_seconds: int
    ) -> None:
        """Delete the pod with this UID."""
        self.requests += 1
        await self._pods.delete_pod(
            namespace, name, uid=uid, grace_period_seconds=grace_period_seconds
        )


class Node:
    """A status manager, its pod manager, and the cost of the last burst."""

    def __init__(self, pods: CountedPodApi, directory: PodManager, policy: str) -> None:
        self._pods = pods
        self._directory = directory
        sync_policy = SyncPolicy.upstream() if policy == "upstream" else None
        self.manager = StatusManager(pods, directory, NothingRuns(), policy=sync_policy)
        self._requests_then = 0
        self._cpu_then = 0.0

    def flip(self, *, ready: bool) -> Set:
        """Set the statuses of all pods at once."""
        flips = [(pod, flipped(pod, ready=ready)) for pod in self._directory.pods()]
        self._requests_then, self._cpu_then = self._pods.requests, time.process_time()
        began = time.time_ns()
        for pod, status in flips:
            self.manager.set_pod_status(pod, status)
        return Set(began)

    def report(self) -> Report:
        """Return the cost of the burst so far."""
        spent = time.process_time() - self._cpu_then
        return Report(spent, self._pods.requests - self._requests_then)


async def obey(lines: Lines, node: Node) -> None:
    """Execute orders until the input ends."""
    while (order := await lines.read(Flip)) is not None:
        lines.write(node.report() if order.ready is None else node.flip(ready=order.ready))


async def main() -> None:
    """Run the contender on standard input and output."""
    lines = await Lines.open()
    start = await lines.read(Start)
    if start is None:
        return
    directory = PodManager()
    async with ApiClient(way_in(start)) as client:
        node = Node(CountedPodApi(HttpPodApi(client)), directory, start.policy)
        reflector = pod_reflector(client, start.node, directory)
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(reflector.run()),
                tasks.create_task(node.manager.run()),
            ]
            await reflector.wait_synced()
            pods = directory.pods()
            lines.write(Started(len(pods), is_ready(pods[0].status)))
            await obey(lines, node)
            for task in running:
                task.cancel()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
