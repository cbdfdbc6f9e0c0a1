"""Bring your own API client and runtime: the ports that a custom node implements.

The API server here is a dict, and the runtime a table of simulated processes. A real client speaks
HTTP, and a real runtime starts processes; the structure is the same.
"""

import time

import msgspec

from podstatus import (
    ConflictError,
    ContainerFacts,
    ContainerRunState,
    GoneError,
    Pod,
    PodFacts,
    PodManager,
    PodStatus,
    SandboxFacts,
    SandboxState,
    StatusManager,
    Time,
    decode,
    from_document,
    generate_api_pod_status,
    to_document,
)
from podstatus.kube.patch import POD, apply_patch

MANIFEST = b"""{"metadata": {"name": "job", "namespace": "default", "uid": "1234"},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]}}"""


class DictApi:
    """Implements the port `PodApi`: three calls, each with a timeout in a real client."""

    def __init__(self, watch: PodManager) -> None:
        self.pods: dict[tuple[str, str], Pod] = {}
        self._watch = watch

    def store(self, pod: Pod) -> Pod:
        """Store a pod and notify the node's watch."""
        self.pods[pod.namespace, pod.name] = pod
        self._watch.update_pod(pod)
        return pod

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """Return one pod. Raises GoneError."""
        if (namespace, name) not in self.pods:
            raise GoneError(f"pod {namespace}/{name} not found", code=404)
        return self.pods[namespace, name]

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        """Apply a strategic merge patch. Raises ConflictError if its UID is another."""
        pod, change = await self.get_pod(namespace, name), msgspec.json.decode(patch)
        if change["metadata"]["uid"] != pod.uid:
            raise ConflictError(f"pod {namespace}/{name} has another UID by now", code=409)
        return self.store(from_document(apply_patch(to_document(pod), change, POD), Pod))

    async def delete_pod(
        self, namespace: str, name: str, *, uid: str, grace_period_seconds: int
    ) -> None:
        """Delete the pod. Raises ConflictError if its UID is another."""
        pod = await self.get_pod(namespace, name)
        if uid != pod.uid or grace_period_seconds != 0:
            raise ConflictError(f"pod {namespace}/{name} has another UID by now", code=409)
        del self.pods[namespace, name]
        self._watch.remove_pod(pod)


class Processes:
    """The runtime, which also implements the port `DeletionSafety`."""

    def __init__(self, pods: PodManager) -> None:
        self._containers: dict[str, ContainerFacts] = {}
        self._pods = pods

    def start(self, pod: Pod) -> None:
        """Simulate the start of the pod's one container."""
        self._containers[pod.uid] = ContainerFacts(
            id="fake://1", name="main", state=ContainerRunState.RUNNING, started_at=now()
        )

    def end(self, pod: Pod, exit_code: int) -> None:
        """Simulate the exit of the container."""
        self._containers[pod.uid] = msgspec.structs.replace(
            self._containers[pod.uid],
            state=ContainerRunState.EXITED,
            exit_code=exit_code,
            reason="Error" if exit_code else "Completed",
            finished_at=now(),
        )

    def facts(self, uid: str) -> PodFacts:
        """Return the pod's sandbox (what its containers share) and containers."""
        if uid not in self._containers:
            return PodFacts()
        container = self._containers[uid]
        runs = container.state is ContainerRunState.RUNNING
        state = SandboxState.READY if runs else SandboxState.NOT_READY
        return PodFacts(
            ips=("10.1.2.3",),
            sandboxes=(SandboxFacts(id="box-1", state=state, ip="10.1.2.3"),),
            containers=(container,),
        )

    def could_have_running_containers(self, pod: Pod) -> bool:
        """Answer from memory, without blocking; a mirror pod stands for its static pod."""
        container = self._containers.get(self._pods.translate_pod_uid(pod.uid))
        return container is not None and container.state is ContainerRunState.RUNNING


def now() -> Time:
    """Return the current wall-clock time."""
    return Time.from_unix_nanos(time.time_ns())


def main() -> None:
    """Run a pod with one container to its end."""
    pods = PodManager()
    processes, api = Processes(pods), DictApi(pods)
    manager = StatusManager(api, pods, processes)
    pod = api.store(decode(MANIFEST, Pod))

    def report() -> PodStatus:
        """Generate the status from the runtime's facts and set it."""
        current = pods.pod_by_uid(pod.uid) or pod
        status = generate_api_pod_status(
            current,
            processes.facts(pod.uid),
            now=now(),
            old_status=manager.pod_status(pod.uid),
            host_ips=("192.168.7.1",),
        )
        return manager.set_pod_status(current, status)[0]

    manager.start()
    print(f"created: {report().phase}")
    processes.start(pod)
    print(f"started: {report().phase}")
    processes.end(pod, exit_code=3)
    print(f"ended:   {report().phase}")
    manager.terminate_pod(pods.pod_by_uid(pod.uid) or pod)
    manager.stop()

    status = api.pods["default", "job"].status
    print(f"the API server shows {status.phase}:")
    for condition in status.conditions or ():
        print(f"  {condition.type:<28}{condition.status:<7}{condition.reason}")


if __name__ == "__main__":
    main()
