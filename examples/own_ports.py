"""Bring your own API server and runtime: what a node of yours has to write.

The API server here is a dict and the runtime a table of processes that are only pretended.
A real one speaks HTTP and starts something; the shape is the same.
"""

import time

import msgspec
from msgspec import structs

from podstatus import (
    ConflictError,
    ContainerState,
    ContainerStatus,
    FeatureGates,
    GoneError,
    Pod,
    PodDirectory,
    PodStatus,
    StatusManager,
    Time,
    decode,
    from_document,
    get_phase,
    to_document,
)
from podstatus.kube.patch import POD, apply_patch
from podstatus.kube.pod_status import ContainerStateRunning, ContainerStateTerminated
from podstatus.status.generate import (
    generate_containers_ready_condition,
    generate_pod_initialized_condition,
    generate_pod_ready_condition,
)

MANIFEST = b"""{"metadata": {"name": "job", "namespace": "default", "uid": "1234"},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]}}"""
GATES = FeatureGates()


class DictApi:
    """The port `PodApi`: three calls, each with a time-out in a real client."""

    def __init__(self, watch: PodDirectory) -> None:
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
    """The port `DeletionSafety`: the runtime says whether something may still be running."""

    def __init__(self, pods: PodDirectory) -> None:
        self.running: set[str] = set()
        self._pods = pods

    def could_have_running_containers(self, pod: Pod) -> bool:
        """Answer at once, from what is known; a mirror pod stands for its static pod."""
        return self._pods.translate_pod_uid(pod.uid) in self.running


def status_of(pod: Pod, *containers: ContainerStatus) -> PodStatus:
    """What the containers add up to: the phase, and the conditions that a node owns."""
    phase = get_phase(pod, containers, pod_is_terminal=False, pod_has_initialized=True, gates=GATES)
    status = PodStatus(phase=phase, container_statuses=containers)
    conditions = (
        generate_pod_initialized_condition(pod, status, containers, phase, GATES),
        generate_pod_ready_condition(pod, status, pod.status.conditions, containers, phase),
        generate_containers_ready_condition(pod, status, containers, phase),
    )
    return structs.replace(status, conditions=conditions)


def main() -> None:
    """Run a pod of one container to its end."""
    pods = PodDirectory()
    processes, api = Processes(pods), DictApi(pods)
    manager = StatusManager(api, pods, processes)
    pod = api.store(decode(MANIFEST, Pod))
    now = Time.from_unix_nanos(time.time_ns())

    manager.start()
    processes.running.add(pod.uid)
    running = ContainerState(running=ContainerStateRunning(started_at=now))
    main_container = ContainerStatus(name="main", container_id="fake://1", started=True)
    up = structs.replace(main_container, state=running, ready=True)
    manager.set_pod_status(pod, status_of(pod, up))

    processes.running.remove(pod.uid)
    ended = ContainerState(
        terminated=ContainerStateTerminated(exit_code=3, reason="Error", finished_at=now)
    )
    manager.set_pod_status(pod, status_of(pod, structs.replace(main_container, state=ended)))
    manager.terminate_pod(pod)
    manager.stop()

    shown = api.pods["default", "job"].status
    print(f"{shown.phase}: {[(c.type, c.status, c.reason) for c in shown.conditions or ()]}")


if __name__ == "__main__":
    main()
