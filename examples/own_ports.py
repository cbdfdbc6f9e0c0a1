"""Bring your own API server and runtime: what a node of yours has to write.

The API server here is a dict and the runtime a table of processes that are only pretended.
A real one speaks HTTP and starts something; the shape is the same.
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
    """The port `PodApi`: three calls, each with a time-out in a real client."""

    def __init__(self, watch: PodManager) -> None:
        self.pods: dict[tuple[str, str], Pod] = {}
        self._watch = watch

    def store(self, pod: Pod) -> Pod:
        """Keep a pod, and let the node's watch see it."""
        self.pods[pod.namespace, pod.name] = pod
        self._watch.update_pod(pod)
        return pod

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """Read one pod."""
        if (namespace, name) not in self.pods:
            raise GoneError(f"pod {namespace}/{name} not found", code=404)
        return self.pods[namespace, name]

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        """Apply a strategic merge patch; the UID in it must be the pod's."""
        pod, change = await self.get_pod(namespace, name), msgspec.json.decode(patch)
        if change["metadata"]["uid"] != pod.uid:
            raise ConflictError(f"pod {namespace}/{name} is another one by now", code=409)
        return self.store(from_document(apply_patch(to_document(pod), change, POD), Pod))

    async def delete_pod(
        self, namespace: str, name: str, *, uid: str, grace_period_seconds: int
    ) -> None:
        """Delete the pod, if it still is the one with this UID."""
        pod = await self.get_pod(namespace, name)
        if uid != pod.uid or grace_period_seconds != 0:
            raise ConflictError(f"pod {namespace}/{name} is another one by now", code=409)
        del self.pods[namespace, name]
        self._watch.remove_pod(pod)


class Processes:
    """The runtime. It is also the port `DeletionSafety`: may something still be running?"""

    def __init__(self, pods: PodManager) -> None:
        self._containers: dict[str, ContainerFacts] = {}
        self._pods = pods

    def start(self, pod: Pod) -> None:
        """Pretend to start the pod's one container."""
        self._containers[pod.uid] = ContainerFacts(
            id="fake://1", name="main", state=ContainerRunState.RUNNING, started_at=now()
        )

    def end(self, pod: Pod, exit_code: int) -> None:
        """Pretend that it ends."""
        self._containers[pod.uid] = msgspec.structs.replace(
            self._containers[pod.uid],
            state=ContainerRunState.EXITED,
            exit_code=exit_code,
            reason="Error" if exit_code else "Completed",
            finished_at=now(),
        )

    def facts(self, uid: str) -> PodFacts:
        """What is known of a pod: its sandbox, which is what containers share, and containers."""
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
        """Answer at once, from what is known; a mirror pod stands for its static pod."""
        container = self._containers.get(self._pods.translate_pod_uid(pod.uid))
        return container is not None and container.state is ContainerRunState.RUNNING


def now() -> Time:
    """The time by this machine's clock."""
    return Time.from_unix_nanos(time.time_ns())


def main() -> None:
    """Run a pod of one container to its end."""
    pods = PodManager()
    processes, api = Processes(pods), DictApi(pods)
    manager = StatusManager(api, pods, processes)
    pod = api.store(decode(MANIFEST, Pod))

    def report() -> PodStatus:
        """Look at the runtime, and have the API server shown what it says."""
        shown = pods.pod_by_uid(pod.uid) or pod
        status = generate_api_pod_status(
            shown,
            processes.facts(pod.uid),
            now=now(),
            old_status=manager.pod_status(pod.uid),
            host_ips=("192.168.7.1",),
        )
        return manager.set_pod_status(shown, status)[0]

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
