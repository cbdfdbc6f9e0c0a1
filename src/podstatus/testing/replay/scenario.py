"""Replay of scenarios: an environment, a status manager, and the changes of each step.

FORMAT.md, sections 2 and 3, describes the records.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.pods.pod_manager import PodManager
from podstatus.status.manager import StatusManager
from podstatus.status.policy import SyncPolicy
from podstatus.testing.clock import FakeClock, run_ready_tasks
from podstatus.testing.fakes import (
    CountingObserver,
    FakeDeletionSafety,
    RecordingNotifier,
    RecordingStartupLatency,
)
from podstatus.testing.in_memory_pod_api import InMemoryPodApi
from podstatus.testing.replay.answers import START_TEXT
from podstatus.testing.replay.observed import StateSnapshot, diff

ScenarioStep = Mapping[str, Any]


async def replay_scenario(scenario: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Replay all steps; return one record per step."""
    runner = _ScenarioRunner(scenario)
    if not scenario.get("loop"):
        return [await runner.step(step) for step in scenario["steps"]]
    loop = asyncio.create_task(runner.manager.run())
    await run_ready_tasks()
    records = [await runner.step(step) for step in scenario["steps"]]
    runner.manager.stop()
    await loop
    return records


class _ScenarioRunner:
    def __init__(self, scenario: Mapping[str, Any]) -> None:
        self._loop = bool(scenario.get("loop"))
        self._pods_by_uid: dict[str, Pod] = {}
        self._clock = FakeClock(START_TEXT)
        self._api = InMemoryPodApi(*_pods(scenario.get("apiPods")), check_uid=False, versions=False)
        self._pod_manager = PodManager()
        self._set_pods(_pods(scenario.get("managerPods")))
        self._safety = FakeDeletionSafety(scenario.get("couldHaveRunningContainers"))
        self._notifier = RecordingNotifier()
        self._startup_latency = RecordingStartupLatency()
        self._observer = CountingObserver()
        self.manager = StatusManager(
            self._api,
            self._pod_manager,
            self._safety,
            startup_latency=self._startup_latency,
            observer=self._observer,
            clock=self._clock,
            gates=FeatureGates.from_names(scenario.get("featureGates") or {}),
            policy=SyncPolicy.upstream(),
        )
        self.manager.add_notifier(self._notifier)
        self._snapshot = self._observe()

    async def step(self, step: ScenarioStep) -> dict[str, Any]:
        """Run one step; return its result and its changes."""
        record: dict[str, Any] = {}
        operation = _OPERATIONS[step["op"]]
        returned = operation(self, step)
        if isinstance(returned, Awaitable):
            returned = await returned
        if returned is not None:
            record["return"] = returned
        if self._loop:
            await run_ready_tasks()
        elif self.manager.pop_changes():
            record["signalled"] = True
        before, self._snapshot = self._snapshot, self._observe()
        record |= diff(before, self._snapshot)
        if step["op"] == "SyncBatch" or (self._loop and "calls" in record):
            record["apiVersions"] = self.manager.sent_versions()
        return record

    def _observe(self) -> StateSnapshot:
        return StateSnapshot.capture(
            self.manager, self._api, self._notifier, self._startup_latency, self._observer
        )

    def _pod(self, step: ScenarioStep) -> Pod:
        return (
            from_document(step["pod"], Pod) if "pod" in step else self._pods_by_uid[step["podUID"]]
        )

    def _set_pods(self, pods: list[Pod]) -> None:
        self._pods_by_uid.update((pod.uid, pod) for pod in pods)
        self._pod_manager.set_pods(pods)

    # Environment

    def manager_set_pods(self, step: ScenarioStep) -> None:
        self._set_pods(_pods(step["pods"]))

    def manager_update_pod(self, step: ScenarioStep) -> None:
        pod = from_document(step["pod"], Pod)
        self._pods_by_uid[pod.uid] = pod
        self._pod_manager.update_pod(pod)

    def manager_observe(self, step: ScenarioStep) -> object:
        pod = self._api.pod(step["namespace"], step["name"])
        if pod is not None:
            self._pods_by_uid[pod.uid] = pod
            self._pod_manager.update_pod(pod)
        return pod is not None

    def manager_remove_pod(self, step: ScenarioStep) -> None:
        pod = self._pods_by_uid.get(step["podUID"])
        if pod is not None:
            self._pod_manager.remove_pod(pod)

    def api_put(self, step: ScenarioStep) -> None:
        self._api.put(from_document(step["pod"], Pod))

    def api_patch(self, step: ScenarioStep) -> object:
        return self._api.patch(step["namespace"], step["name"], step["patch"])

    def api_delete(self, step: ScenarioStep) -> None:
        self._api.remove(step["namespace"], step["name"])

    def api_fail(self, step: ScenarioStep) -> None:
        self._api.fail(
            step["verb"], step["namespace"], step["name"], code=step["code"], times=step["times"]
        )

    def set_could_have_running_containers(self, step: ScenarioStep) -> None:
        self._safety.table[step["podUID"]] = step["value"]

    async def advance_clock(self, step: ScenarioStep) -> None:
        await self._clock.advance(step["seconds"])

    # Manager

    def set_pod_status(self, step: ScenarioStep) -> object:
        new_status = from_document(step["status"], PodStatus)
        status, changed = self.manager.set_pod_status(self._pod(step), new_status)
        return {"status": status, "changed": changed}

    def set_container_readiness(self, step: ScenarioStep) -> None:
        self.manager.set_container_readiness(
            step["podUID"], step["containerID"], ready=step["ready"]
        )

    def set_container_startup(self, step: ScenarioStep) -> None:
        self.manager.set_container_startup(
            step["podUID"], step["containerID"], started=step["started"]
        )

    def terminate_pod(self, step: ScenarioStep) -> None:
        self.manager.terminate_pod(self._pod(step))

    def remove_orphaned_statuses(self, step: ScenarioStep) -> None:
        self.manager.remove_orphaned_statuses(step["podUIDs"])

    def get_pod_status(self, step: ScenarioStep) -> object:
        status = self.manager.pod_status(step["podUID"])
        return {"status": status or PodStatus(), "found": status is not None}

    async def sync_batch(self, step: ScenarioStep) -> object:
        return await self.manager.sync_batch(full=step["all"])

    def set_pod_resize_pending_condition(self, step: ScenarioStep) -> object:
        return self.manager.set_pod_resize_pending_condition(*_resize_arguments(step))

    def set_pod_resize_in_progress_condition(self, step: ScenarioStep) -> object:
        return self.manager.set_pod_resize_in_progress_condition(*_resize_arguments(step))

    def clear_pod_resize_pending_condition(self, step: ScenarioStep) -> None:
        self.manager.clear_pod_resize_pending_condition(step["podUID"])

    def clear_pod_resize_in_progress_condition(self, step: ScenarioStep) -> object:
        generation = self.manager.clear_pod_resize_in_progress_condition(step["podUID"])
        return [generation or 0, generation is not None]

    def get_pod_resize_conditions(self, step: ScenarioStep) -> object:
        return self.manager.pod_resize_conditions(step["podUID"])

    def is_pod_resize_deferred(self, step: ScenarioStep) -> object:
        return self.manager.is_pod_resize_deferred(step["podUID"])

    def is_pod_resize_infeasible(self, step: ScenarioStep) -> object:
        return self.manager.is_pod_resize_infeasible(step["podUID"])

    def backfill_pod_resize_conditions(self, step: ScenarioStep) -> None:
        pods = (self._pods_by_uid.get(uid) for uid in step["podUIDs"])
        self.manager.backfill_pod_resize_conditions(pod for pod in pods if pod is not None)


_OPERATIONS: dict[str, Callable[[_ScenarioRunner, ScenarioStep], object]] = {
    "".join(word.title() for word in name.split("_")): operation
    for name, operation in vars(_ScenarioRunner).items()
    if not name.startswith("_") and name != "step"
}


def _pods(documents: list[Any] | None) -> list[Pod]:
    return [from_document(document, Pod) for document in documents or ()]


def _resize_arguments(step: ScenarioStep) -> tuple[str, str, str, int]:
    return step["podUID"], step["reason"], step["message"], step["observedGeneration"]
