"""Keep the status of one pod true in an API server, step by step, in virtual time.

With upstream's policy, so that the requests are the kubelet's: each pod is read, then patched.
Without `policy` the reads are left out.
"""

import asyncio

from podstatus import PodManager, StatusManager, SyncPolicy
from podstatus.testing.builders import ended, make_pod, make_status, running, waiting
from podstatus.testing.clock import FakeClock
from podstatus.testing.fakes import FakeDeletionSafety
from podstatus.testing.pod_api import InMemoryPodApi


async def main() -> None:
    """Tell the life of a pod."""
    clock, pods, safety = FakeClock("2030-01-01T12:00:00Z"), PodManager(), FakeDeletionSafety()
    api = InMemoryPodApi(pod := make_pod("web", restart_policy="Never"), watcher=pods)
    manager = StatusManager(api, pods, safety, clock=clock, policy=SyncPolicy.upstream())
    loop = asyncio.create_task(manager.run())

    async def after(seconds: float, what_happened: str) -> None:
        await clock.advance(seconds)
        requests, api.calls = " ".join(call.verb.upper() for call in api.calls), []
        print(f"{what_happened:<58}{requests or '-':<18}{describe(api)}")

    print("In virtual time: the clock is moved by hand.\n")
    print(f"{'WHAT HAPPENED ON THE NODE':<58}{'REQUESTS':<18}WHAT THE API SERVER SHOWS")
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
    await after(0, "Somebody adds a condition of theirs and breaks our phase.")
    await after(10, "The reconcile every 10 s repairs ours and keeps theirs.")
    safety.table[pod.uid] = True
    manager.set_pod_status(pod, make_status("Succeeded", ended("app"), Ready="False"))
    await after(1, "It ended, but something may still run: phase held back.")
    safety.table[pod.uid] = False
    await after(10, "All is stopped now: the next reconcile sends the phase.")
    api.request_deletion("default", "web", at="2030-01-01T12:00:30Z")
    await after(0, "A user deletes the pod: it is marked, and waits for us.")
    manager.terminate_pod(pods.pod_by_uid(pod.uid) or pod)
    await after(1, "The node lets go of it: nothing to add, so the delete.")

    manager.stop()
    await loop


def describe(api: InMemoryPodApi) -> str:
    """What the API server has, in a line."""
    if (pod := api.pod("default", "web")) is None:
        return "(gone)"
    true = [c.type for c in pod.status.conditions or () if c.status == "True"]
    deleting = ", deletion requested" if pod.metadata.deletion_timestamp else ""
    return f"{pod.status.phase:<10}conditions true: {', '.join(true) or 'none'}{deleting}"


if __name__ == "__main__":
    asyncio.run(main())
