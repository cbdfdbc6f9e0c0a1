"""Give the containers of a pod what it was granted, and tell how far that has come.

Upstream: doPodResizeAction, kuberuntime_manager.go v1.36.4; SyncPod, kubelet.go.
"""

import logging
from collections.abc import Callable, Mapping

from msgspec import structs

from podstatus.events import reasons
from podstatus.events.event import pod_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.conditions import POD_RESIZE_IN_PROGRESS
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.runtime_facts import PodFacts
from podstatus.runtime.port import CannotResizeError, ResizesPods, Runtime
from podstatus.status.manager import StatusManager
from podstatus.workers.allocation.allocations import AllocationManager
from podstatus.workers.resize.message import resize_message
from podstatus.workers.resize.plan import ResizePlan, plan_resize, running_containers

logger = logging.getLogger(__name__)

ERROR_REASON = "Error"


class ResizeActuator:
    """Puts grants in force. One pod is looked at by one task at a time."""

    def __init__(
        self,
        runtime: Runtime,
        allocations: AllocationManager,
        statuses: StatusManager,
        recorder: EventRecorder,
        *,
        on_completed: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_completed` is told when a pod has what it was granted: others may have room now."""
        self._runtime = runtime
        self._allocations = allocations
        self._statuses = statuses
        self._recorder = recorder
        self._on_completed = on_completed
        self._recovered: set[PodUID] = set()
        """Whose condition still tells of an error that is over."""

    @property
    def allocations(self) -> AllocationManager:
        """What is put in force."""
        return self._allocations

    def reconcile(self, pod: Pod, facts: PodFacts) -> ResizePlan:
        """What is to be done for a pod as granted; its condition says whether there is anything."""
        plan = plan_resize(pod, self._allocations.actuated(pod.uid), facts)
        if self._must_retry(pod.uid):
            # It may be the pod as a whole that could not be resized: no container tells of that.
            running = running_containers(pod, facts)
            in_place = {name: it for name, it in running.items() if name not in plan.restart}
            plan = structs.replace(plan, in_place=in_place, pod_level=True)
        if plan.is_in_progress:
            self._statuses.set_pod_resize_in_progress_condition(pod.uid, "", "", _generation(pod))
        else:
            self._complete(pod)
        return plan

    def _must_retry(self, uid: PodUID) -> bool:
        """Whether the latest try has failed, also before a restart."""
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
        words = resize_message("Pod resize completed", pod, generation)
        self._recorder.normal(pod_reference(pod), reasons.RESIZE_COMPLETED, words)
        self._on_completed()

    async def resize(self, pod: Pod, containers: Mapping[str, str]) -> bool:
        """Have the pod, and these of its running containers, resized; whether that was done."""
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
        """A container is about to be started with what it was granted."""
        await self._allocations.set_actuated(pod, (container.name,))

    def _record_failure(self, pod: Pod, message: str) -> None:
        logger.warning("pod cannot be resized: pod=%s/%s why=%s", *pod.full_name, message)
        self._recovered.discard(pod.uid)
        generation, changed = self._statuses.set_pod_resize_in_progress_condition(
            pod.uid, ERROR_REASON, message, _generation(pod)
        )
        if changed:
            words = resize_message("Pod resize error", pod, generation, message)
            self._recorder.warn(pod_reference(pod), reasons.RESIZE_ERROR, words)

    def retain_only(self, uids: set[PodUID]) -> None:
        """Forget all pods but these."""
        self._recovered &= uids


def _generation(pod: Pod) -> int:
    return pod.metadata.generation
