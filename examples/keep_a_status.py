"""Sync the status of one pod to an API server, step by step, in virtual time.

With upstream's policy, so that the requests are the kubelet's: each pod is read, then patched.
Without `policy` the reads are omitted.
"""

import asyncio

from podstatus import PodManager, StatusManager, SyncPolicy
from podstatus.testing.builders import ended, make_pod, make_status, running, waiting
from podstatus.testing.clock import FakeClock
from podstatus.testing.fakes import FakeDeletionSafety
from podstatus.testing.in_memory_pod_api import InMemoryPodApi


async def main() -> None:
    """Play the lifecycle of a pod and print each step."""
    clock, pods, safety = FakeClock("2030-01-01T12:00:00Z"), PodManager(), FakeDeletionSafety()
    api = InMemoryPodApi(pod := make_pod("web", restart_policy="Never"), watcher=pods)
    manager = StatusManager(api, pods, safety, clock=clock, policy=SyncPolicy.upstream())
    loop = asyncio.create_task(manager.run())

    async def after(seconds: float, event: str) -> None:
        await clock.advance(seconds)
        requests, api.calls = " ".join(call.verb.upper() for call in api.calls), []
        print(f"{event:<58}{requests or '-':<18}{describe(api)}")

    print("In virtual time: the clock is advanced by hand.\n")
    print(f"{'EVENT ON THE NODE':<58}{'REQUESTS':<18}STATUS ON THE API SERVER")
    manager.set_pod_status(pod, make_status("Pending", waiting("app"), Ready="False"))
    await after(1, "The container is being created.")
    manager.set_pod_status(pod, make_status("Running", running("app", ready=False), Ready="False"))
    await after(1, "It runs, but its readiness probe has not passed yet.")
    manager.set_container_readiness(pod.uid, "fake://app", ready=True)
    await after(1, "The probe passed: Ready and ContainersReady follow.")
    manager.set_pod_status(pod, manager.pod_status(pod.uid) or pod.status)
    await after(1, "The same status again: nothing to send.")
    gate = {"type": "example.com/lb", "status": "True"}
    api.patch("default", "web", {"status": {"phase": "Unknown", "conditions": [gate]}})
    await after(0, "Another client adds a condition and overwrites the phase.")
    await after(10, "The reconcile (every 10 s) restores only the phase.")
    safety.table[pod.uid] = True
    manager.set_pod_status(pod, make_status("Succeeded", ended("app"), Ready="False"))
    await after(1, "It ended, but containers may still run: phase held back.")
    safety.table[pod.uid] = False
    await after(10, "All have stopped: the next reconcile sends the phase.")
    api.request_deletion("default", "web", at="2030-01-01T12:00:30Z")
    await after(0, "A user deletes the pod: it is marked for deletion.")
    manager.terminate_pod(pods.pod_by_uid(pod.uid) or pod)
    await after(1, "The node has finished with it: the final delete.")

    manager.stop()
    await loop


def describe(api: InMemoryPodApi) -> str:
    """Return the pod's status on the API server, in one line."""
    if (pod := api.pod("default", "web")) is None:
        return "(gone)"
    true = [c.type for c in pod.status.conditions or () if c.status == "True"]
    deleting = ", deletion requested" if pod.metadata.deletion_timestamp else ""
    return f"{pod.status.phase:<10}conditions true: {', '.join(true) or 'none'}{deleting}"


if __name__ == "__main__":
    asyncio.run(main())
