"""Apply allocated resources through the runtime, and report the progress of a resize.

Upstream: doPodResizeAction, kuberuntime_manager.go v1.36.4; SyncPod, kubelet.go.
"""

import logging
from collections.abc import Callable, Mapping

from msgspec import structs

from podstatus.events import reasons
from podstatus.events.object_references import pod_reference
from podstatus.kube.conditions import POD_RESIZE_IN_PROGRESS
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.runtime_facts import PodFacts
from podstatus.runtime.port import CannotResizeError, ResizesPods
from podstatus.workers.allocation.allocations import AllocationManager
from podstatus.workers.dependencies import WorkerDependencies
from podstatus.workers.resize.decision import resize_message
from podstatus.workers.resize.plan import ResizePlan, plan_resize, running_containers

logger = logging.getLogger(__name__)

ERROR_REASON = "Error"


class ResizeActuator:
    """Actuates allocations. Callers handle each pod in one task at a time."""

    def __init__(
        self,
        dependencies: WorkerDependencies,
        allocations: AllocationManager,
        *,
        on_completed: Callable[[], None],
    ) -> None:
        """`on_completed` is called after a resize is done, since it may free resources."""
        self._runtime = dependencies.runtime
        self._statuses = dependencies.statuses
        self._recorder = dependencies.recorder
        self._allocations = allocations
        self._on_completed = on_completed
        self._recovered: set[PodUID] = set()
        """Pods whose condition still reports an error, though a later attempt has succeeded."""

    @property
    def allocations(self) -> AllocationManager:
        """The allocations that this actuator applies."""
        return self._allocations

    def reconcile(self, pod: Pod, facts: PodFacts) -> ResizePlan:
        """Plan the resize of a pod with its allocation; update PodResizeInProgress."""
        plan = plan_resize(pod, self._allocations.actuated(pod.uid), facts)
        if self._must_retry(pod.uid):
            # The pod-level resize may have failed, which no container shows: retry everything.
            running = running_containers(pod, facts)
            in_place = {name: id_ for name, id_ in running.items() if name not in plan.restart}
            plan = structs.replace(plan, in_place=in_place, pod_level=True)
        if plan.is_in_progress:
            self._statuses.set_pod_resize_in_progress_condition(pod.uid, "", "", _generation(pod))
        else:
            self._complete(pod)
        return plan

    def _must_retry(self, uid: PodUID) -> bool:
        """Whether the last resize failed, also before a restart of the agent."""
        conditions = self._statuses.pod_resize_conditions(uid)
        failed = any(
            c.type == POD_RESIZE_IN_PROGRESS and c.reason == ERROR_REASON for c in conditions
        )
        return failed and uid not in self._recovered

    def _complete(self, pod: Pod) -> None:
        self._recovered.discard(pod.uid)
        generation = self._statuses.clear_pod_resize_in_progress_condition(pod.uid)
        if generation is None:
            return
        text = resize_message("Pod resize completed", pod, generation)
        self._recorder.normal(pod_reference(pod), reasons.RESIZE_COMPLETED, text)
        self._on_completed()

    async def resize(self, pod: Pod, containers: Mapping[str, str]) -> bool:
        """Resize the pod and these running containers, name -> ID. Return whether it worked."""
        if isinstance(self._runtime, ResizesPods):
            try:
                await self._runtime.resize_pod(pod, containers)
            except CannotResizeError as error:
                self._record_failure(pod, str(error))
                return False
        elif containers:
            self._record_failure(
                pod, f"runtime {self._runtime.name} cannot resize running containers"
            )
            return False
        await self._allocations.set_actuated(pod, containers, pod_level=True)
        self._recovered.add(pod.uid)
        return True

    async def before_start(self, pod: Pod, container: Container) -> None:
        """Record that a container starts with its allocated resources."""
        await self._allocations.set_actuated(pod, (container.name,))

    def _record_failure(self, pod: Pod, message: str) -> None:
        logger.warning("pod resize failed, will retry: pod=%s/%s error=%s", *pod.full_name, message)
        self._recovered.discard(pod.uid)
        generation, changed = self._statuses.set_pod_resize_in_progress_condition(
            pod.uid, ERROR_REASON, message, _generation(pod)
        )
        if changed:
            text = resize_message("Pod resize error", pod, generation, message)
            self._recorder.warn(pod_reference(pod), reasons.RESIZE_ERROR, text)

    def retain_only(self, uids: set[PodUID]) -> None:
        """Drop the state of all pods except these."""
        self._recovered &= uids


def _generation(pod: Pod) -> int:
    return pod.metadata.generation
