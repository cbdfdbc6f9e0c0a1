"""Apply changes of the desired pods: pod manager, admission, pod workers.

Upstream: HandlePodAdditions, HandlePodUpdates, HandlePodRemoves and HandlePodReconcile,
pkg/kubelet/kubelet.go v1.36.4.
"""

import logging
from collections.abc import Callable

from msgspec import structs

from podstatus.events import reasons
from podstatus.events.object_references import pod_reference
from podstatus.kube.objects.pod import Pod, PodUID, is_mirror_pod, is_static_pod, is_terminal_phase
from podstatus.kube.scalars.time import Time
from podstatus.sources.decide.pod_changes import (
    PodAdded,
    PodConfigChange,
    PodDeleting,
    PodReconciled,
    PodRemoved,
    PodUpdated,
)
from podstatus.sources.mux import RejectedPod
from podstatus.status.decide.foreign_writes import with_own_parts
from podstatus.status.decide.generate_conditions import need_to_reconcile_pod_readiness
from podstatus.status.startup_latency_tracker import StartupLatencyTracker
from podstatus.workers.admission.admit import AdmissionRejected, rejected_status
from podstatus.workers.admission.pod_limits import find_limit_violation
from podstatus.workers.allocation.request_totals import PodAdmission
from podstatus.workers.allocation.resize_controller import ResizeController
from podstatus.workers.dependencies import WorkerDependencies
from podstatus.workers.lifecycle.state_machine import PodWorkerState
from podstatus.workers.pod_workers import PodWorkers

logger = logging.getLogger(__name__)


class PodDispatcher:
    """Handles pod changes from the sources in order. Methods never block."""

    def __init__(
        self,
        dependencies: WorkerDependencies,
        workers: PodWorkers,
        admission: PodAdmission,
        resize_controller: ResizeController,
        *,
        startup_latency: StartupLatencyTracker,
        on_mirror: Callable[[], None],
        on_pod_change: Callable[[PodUID], None],
    ) -> None:
        """`resize_controller` receives every pod that has a worker and was added or changed.

        `on_pod_change` is called for each pod that the pod manager adds, updates or removes.
        """
        self._pod_manager = dependencies.pod_manager
        self._registry = dependencies.registry
        self._statuses = dependencies.statuses
        self._recorder = dependencies.recorder
        self._clock = dependencies.clock
        self._gates = dependencies.policy.gates
        self._workers = workers
        self._admission = admission
        self._resize_controller = resize_controller
        self._startup_latency = startup_latency
        self._on_mirror = on_mirror
        self._on_pod_change = on_pod_change

    def handle(self, change: PodConfigChange) -> None:
        """Apply one change of the desired pods."""
        match change:
            case PodAdded(pods):
                for pod in pods:
                    self._add_safely(pod)
                self._statuses.backfill_pod_resize_conditions(
                    pod for pod in pods if not is_mirror_pod(pod)
                )
                for pod in pods:
                    self._enqueue_resize(pod)
            case PodUpdated(pod) | PodDeleting(pod):
                pod = self._within_limits(pod)
                self._update_pod_manager(pod)
                self._update_worker(pod)
                self._enqueue_resize(pod)
            case PodReconciled(pod):
                pod = self._within_limits(pod)
                self._update_pod_manager(pod)
                if not is_mirror_pod(pod) and need_to_reconcile_pod_readiness(pod):
                    self._update_worker(pod)
            case PodRemoved(pod):
                self._remove(pod)

    def _within_limits(self, pod: Pod) -> Pod:
        """The pod, with its admitted spec if the new spec exceeds the size limits.

        Only ephemeral containers can be added to a running pod, so the old spec still describes the
        other containers.
        """
        old = self._pod_manager.pod_by_uid(pod.uid)
        if old is None or old.spec is pod.spec or self._registry.get(pod.uid) is None:
            return pod
        if (violation := find_limit_violation(pod)) is None or find_limit_violation(
            old
        ) is not None:
            return pod
        logger.warning(
            "new pod spec exceeds the limits of this node, keeping the old spec: "
            "pod=%s/%s uid=%s error=%s",
            *pod.full_name,
            pod.uid,
            violation.message,
        )
        return structs.replace(pod, spec=old.spec)

    def _update_pod_manager(self, pod: Pod) -> None:
        self._pod_manager.update_pod(pod)
        self._on_pod_change(pod.uid)
        self._statuses.pod_observed(pod.uid)
        self._startup_latency.observed_pod_on_watch(pod, Time.from_unix_nanos(self._clock.now()))
        if is_mirror_pod(pod) or is_static_pod(pod):
            self._on_mirror()

    def _add_safely(self, pod: Pod) -> None:
        """Add a pod; an exception rejects this pod only.

        It must not stop the loop: housekeeping would terminate the pods that were not added.
        """
        try:
            self._add(pod)
        except Exception as error:
            logger.exception("pod admission failed: pod=%s/%s uid=%s", *pod.full_name, pod.uid)
            message = f"GeneralPredicates failed due to {error}, which is unexpected."
            self._reject(
                pod, AdmissionRejected(reason=reasons.UNEXPECTED_ADMISSION_ERROR, message=message)
            )

    def _add(self, pod: Pod) -> None:
        self._update_pod_manager(pod)
        if is_mirror_pod(pod):
            # The status of its static pod can be sent now.
            self._statuses.reconcile()
            return
        if self._is_new(pod) and (rejected := self._admission.admit(pod)) is not None:
            self._reject(pod, rejected)
            return
        self._update_worker(pod)

    def _is_new(self, pod: Pod) -> bool:
        """Whether to decide on the pod's admission; an eviction that began is completed instead."""
        return (
            self._registry.get(pod.uid) is None
            and not is_terminal_phase(pod.status.phase)
            and not self._workers.has_eviction(pod.uid)
        )

    def _enqueue_resize(self, pod: Pod) -> None:
        """Queue a pod that has a worker for a resize decision."""
        if self._registry.get(pod.uid) is not None:
            self._resize_controller.enqueue(pod)

    def _reject(self, pod: Pod, rejected: AdmissionRejected) -> None:
        """Record the rejection in an event and the status; the pod gets no worker.

        Upstream: rejectPod, kubelet.go v1.36.4.
        """
        logger.info(
            "pod rejected: pod=%s/%s uid=%s reason=%s", *pod.full_name, pod.uid, rejected.reason
        )
        self._recorder.warn(pod_reference(pod), rejected.reason, rejected.message)
        self._statuses.set_pod_status(pod, rejected_status(pod, rejected))

    def _update_worker(self, pod: Pod) -> None:
        """Pass the pod to its worker. A rejected pod gets a worker only when it is deleted."""
        if is_mirror_pod(pod):
            return
        lifecycle = self._registry.get(pod.uid)
        if lifecycle is None:
            status = self._statuses.pod_status(pod.uid)
            if status is not None and is_terminal_phase(status.phase):
                pod = structs.replace(pod, status=status)
        elif not lifecycle.source_removed:
            pod = self._with_own_status(pod)
        self._workers.update(pod)

    def resync(self, uid: PodUID) -> bool:
        """Regenerate a status that another writer changed. Return whether a worker will do it."""
        pod, lifecycle = self._pod_manager.pod_by_uid(uid), self._registry.get(uid)
        if pod is None or lifecycle is None or lifecycle.state is not PodWorkerState.SYNC:
            return False
        self._update_worker(pod)
        return True

    def _with_own_status(self, pod: Pod) -> Pod:
        """The pod with the cached status in place of what other writers changed."""
        status = self._statuses.pod_status(pod.uid)
        if status is None or is_static_pod(pod):
            return pod
        return structs.replace(pod, status=with_own_parts(pod.status, status, self._gates))

    def _remove(self, pod: Pod) -> None:
        self._pod_manager.remove_pod(pod)
        self._on_pod_change(pod.uid)
        if is_mirror_pod(pod):
            self._on_mirror()
        else:
            self._workers.remove(pod.uid)
            self._resize_controller.retry()

    def report_rejected(self, rejected: RejectedPod) -> None:
        """Record an event for a pod that the mux ignores because of a duplicate."""
        self._recorder.warn(
            pod_reference(rejected.pod),
            reasons.FAILED_VALIDATION,
            "Error validating pod "
            f"{rejected.pod.name}_{rejected.pod.namespace}({rejected.pod.uid}) "
            f"from {rejected.source} {rejected.message}, ignoring",
        )
