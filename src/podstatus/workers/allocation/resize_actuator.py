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
from podstatus.runtime.port import CannotResizeError, Resizing, Runtime
from podstatus.status.manager import StatusManager
from podstatus.workers.allocation.allocations import Grants
from podstatus.workers.resize.message import resize_words
from podstatus.workers.resize.plan import ResizePlan, plan_resize, running_containers

logger = logging.getLogger(__name__)

ERROR = "Error"


class Actuation:
    """Puts grants in force. One pod is looked at by one task at a time."""

    def __init__(
        self,
        runtime: Runtime,
        grants: Grants,
        statuses: StatusManager,
        recorder: EventRecorder,
        *,
        on_done: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_done` is told when a pod has what it was granted: others may have room now."""
        self._runtime = runtime
        self._grants = grants
        self._statuses = statuses
        self._recorder = recorder
        self._on_done = on_done
        self._mended: set[PodUID] = set()
        """Whose condition still tells of an error that is over."""

    @property
    def grants(self) -> Grants:
        """What is put in force."""
        return self._grants

    def look(self, pod: Pod, facts: PodFacts) -> ResizePlan:
        """What is to be done for a pod as granted; its condition says whether there is anything."""
        plan = plan_resize(pod, self._grants.in_force(pod.uid), facts)
        if self._is_owed(pod.uid):
            # It may be the pod as a whole that could not be resized: no container tells of that.
            running = running_containers(pod, facts)
            in_place = {name: it for name, it in running.items() if name not in plan.restart}
            plan = structs.replace(plan, in_place=in_place, whole=True)
        if plan.is_under_way:
            self._statuses.set_pod_resize_in_progress_condition(pod.uid, "", "", _generation(pod))
        else:
            self._done(pod)
        return plan

    def _is_owed(self, uid: PodUID) -> bool:
        """Whether the latest try has failed, also before a restart."""
        conditions = self._statuses.pod_resize_conditions(uid)
        failed = any(c.type == POD_RESIZE_IN_PROGRESS and c.reason == ERROR for c in conditions)
        return failed and uid not in self._mended

    def _done(self, pod: Pod) -> None:
        self._mended.discard(pod.uid)
        generation = self._statuses.clear_pod_resize_in_progress_condition(pod.uid)
        if generation is None:
            return
        words = resize_words("Pod resize completed", pod, generation)
        self._recorder.normal(pod_reference(pod), reasons.RESIZE_COMPLETED, words)
        self._on_done()

    async def resize(self, pod: Pod, containers: Mapping[str, str]) -> bool:
        """Have the pod, and these of its running containers, resized; whether that was done."""
        if isinstance(self._runtime, Resizing):
            try:
                await self._runtime.resize_pod(pod, containers)
            except CannotResizeError as error:
                self._failed(pod, str(error))
                return False
        elif containers:
            self._failed(pod, f"runtime {self._runtime.name} cannot resize running containers")
            return False
        await self._grants.put_in_force(pod, containers, whole=True)
        self._mended.add(pod.uid)
        return True

    async def starting(self, pod: Pod, container: Container) -> None:
        """A container is about to be started with what it was granted."""
        await self._grants.put_in_force(pod, (container.name,))

    def _failed(self, pod: Pod, why: str) -> None:
        logger.warning("pod cannot be resized: pod=%s/%s why=%s", *pod.full_name, why)
        self._mended.discard(pod.uid)
        generation, changed = self._statuses.set_pod_resize_in_progress_condition(
            pod.uid, ERROR, why, _generation(pod)
        )
        if changed:
            words = resize_words("Pod resize error", pod, generation, why)
            self._recorder.warn(pod_reference(pod), reasons.RESIZE_ERROR, words)

    def keep(self, uids: set[PodUID]) -> None:
        """Forget all pods but these."""
        self._mended &= uids


def _generation(pod: Pod) -> int:
    return pod.metadata.generation
