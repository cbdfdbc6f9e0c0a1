"""What becomes of a change of the desired pods: the directory, admission, the workers.

Upstream: HandlePodAdditions and its brothers, pkg/kubelet/kubelet.go v1.36.4.
"""

import logging
from collections.abc import Callable

from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.events import reasons
from podstatus.events.event import pod_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod, PodUID, is_mirror_pod, is_static_pod, is_terminal_phase
from podstatus.kube.scalars.time import Time
from podstatus.pods.pod_manager import PodManager
from podstatus.sources.mux import RejectedPod
from podstatus.sources.pod_changes import (
    PodAdded,
    PodConfigChange,
    PodDeleting,
    PodReconciled,
    PodRemoved,
    PodUpdated,
)
from podstatus.status.decide.foreign_writes import with_own_parts
from podstatus.status.decide.generate import need_to_reconcile_pod_readiness
from podstatus.status.manager import StatusManager
from podstatus.status.startup_latency import StartupLatencyTracker
from podstatus.workers.admission.admit import AdmissionRejected, AdmissionResult, rejected_status
from podstatus.workers.admission.pod_limits import find_limit_violation
from podstatus.workers.admission.resource_fit import RequestedResources
from podstatus.workers.allocation.allocations import AllocationManager
from podstatus.workers.allocation.request_totals import RequestTotals
from podstatus.workers.allocation.resize_controller import ResizeController
from podstatus.workers.lifecycle.pod_registry import PodRegistry
from podstatus.workers.lifecycle.state_machine import PodWorkerState
from podstatus.workers.pod_workers import PodWorkers

logger = logging.getLogger(__name__)

AdmitPod = Callable[[Pod, RequestedResources], AdmissionResult]
"""Whether a pod fits beside what others have of this node."""


class PodDispatcher:
    """Takes the changes of the sources, one after the other; it never waits."""

    def __init__(
        self,
        pod_manager: PodManager,
        registry: PodRegistry,
        workers: PodWorkers,
        statuses: StatusManager,
        recorder: EventRecorder,
        allocations: AllocationManager,
        request_totals: RequestTotals,
        *,
        admit: AdmitPod,
        startup_latency: StartupLatencyTracker,
        on_mirror: Callable[[], None],
        clock: Clock,
        gates: FeatureGates | None = None,
        resize_controller: ResizeController | None = None,
        on_pod_change: Callable[[PodUID], None] = lambda _: None,
    ) -> None:
        """`resize_controller` is told of pods that ask for other resources than `allocations` has
        for them, `on_pod_change` of all that the directory has anew, or has no more."""
        self._pod_manager = pod_manager
        self._registry = registry
        self._workers = workers
        self._statuses = statuses
        self._recorder = recorder
        self._allocations = allocations
        self._request_totals = request_totals
        self._admit = admit
        self._startup_latency = startup_latency
        self._on_mirror = on_mirror
        self._clock = clock
        self._gates = gates or FeatureGates()
        self._resize_controller = resize_controller
        self._on_pod_change = on_pod_change

    def handle(self, change: PodConfigChange) -> None:
        """Take one change."""
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
        """The pod; with the spec that was admitted, if the new one is too large for the node.

        The containers of a pod cannot change, except that ephemeral ones are added.
        """
        known = self._pod_manager.pod_by_uid(pod.uid)
        if known is None or known.spec is pod.spec or self._registry.get(pod.uid) is None:
            return pod
        if (excess := find_limit_violation(pod)) is None or find_limit_violation(known) is not None:
            return pod
        logger.warning(
            "pod outgrew the node, its new spec is ignored: pod=%s/%s uid=%s why=%s",
            *pod.full_name,
            pod.uid,
            excess.message,
        )
        return structs.replace(pod, spec=known.spec)

    def _update_pod_manager(self, pod: Pod) -> None:
        self._pod_manager.update_pod(pod)
        self._on_pod_change(pod.uid)
        self._statuses.pod_observed(pod.uid)
        self._startup_latency.observed_pod_on_watch(pod, Time.from_unix_nanos(self._clock.now()))
        if is_mirror_pod(pod) or is_static_pod(pod):
            self._on_mirror()

    def _add_safely(self, pod: Pod) -> None:
        """Take a new pod; what goes wrong with it is not to cost the others their lives.

        Who is not known here is ended by housekeeping.
        """
        try:
            self._add(pod)
        except Exception as error:
            logger.exception("pod cannot be taken: pod=%s/%s uid=%s", *pod.full_name, pod.uid)
            message = f"GeneralPredicates failed due to {error}, which is unexpected."
            self._reject(
                pod, AdmissionRejected(reason=reasons.UNEXPECTED_ADMISSION_ERROR, message=message)
            )

    def _add(self, pod: Pod) -> None:
        self._update_pod_manager(pod)
        if is_mirror_pod(pod):
            # What is known of its static pod had nowhere to go until now.
            self._statuses.reconcile()
            return
        if self._registry.get(pod.uid) is None and not is_terminal_phase(pod.status.phase):
            match self._admit(
                self._allocations.allocated(pod), self._request_totals.excluding(pod.uid)
            ):
                case AdmissionRejected() as rejected:
                    self._reject(pod, rejected)
                    return
            self._allocations.reserve(pod)
        self._update_worker(pod)

    def _enqueue_resize(self, pod: Pod) -> None:
        """Have it decided whether a pod that has a worker gets what it asks for."""
        if self._resize_controller is not None and self._registry.get(pod.uid) is not None:
            self._resize_controller.enqueue(pod)

    def _reject(self, pod: Pod, rejected: AdmissionRejected) -> None:
        """Say that the node does not take it; no worker ever hears of it.

        Upstream: rejectPod, kubelet.go v1.36.4.
        """
        logger.info(
            "pod rejected: pod=%s/%s uid=%s reason=%s", *pod.full_name, pod.uid, rejected.reason
        )
        self._recorder.warn(pod_reference(pod), rejected.reason, rejected.message)
        self._statuses.set_pod_status(pod, rejected_status(pod, rejected))

    def _update_worker(self, pod: Pod) -> None:
        """Let the worker of the pod know; one that was rejected has none until it is deleted."""
        if is_mirror_pod(pod):
            return
        life = self._registry.get(pod.uid)
        if life is None:
            known = self._statuses.pod_status(pod.uid)
            if known is not None and is_terminal_phase(known.phase):
                pod = structs.replace(pod, status=known)
        elif not life.source_removed:
            pod = self._with_own_status(pod)
        self._workers.update(pod)

    def resync(self, uid: PodUID) -> bool:
        """Somebody else wrote to the status of a pod: have it made anew; whether somebody will."""
        pod, life = self._pod_manager.pod_by_uid(uid), self._registry.get(uid)
        if pod is None or life is None or life.state is not PodWorkerState.SYNC:
            return False
        self._update_worker(pod)
        return True

    def _with_own_status(self, pod: Pod) -> Pod:
        """The pod as we know it: what others wrote of its status does not make it so."""
        known = self._statuses.pod_status(pod.uid)
        if known is None or is_static_pod(pod):
            return pod
        return structs.replace(pod, status=with_own_parts(pod.status, known, self._gates))

    def _remove(self, pod: Pod) -> None:
        self._pod_manager.remove_pod(pod)
        self._on_pod_change(pod.uid)
        if is_mirror_pod(pod):
            self._on_mirror()
        else:
            self._workers.remove(pod.uid)
            if self._resize_controller is not None:
                self._resize_controller.retry()

    def report_rejected(self, rejected: RejectedPod) -> None:
        """Say that a pod is not taken from its source; its twin is there already."""
        self._recorder.warn(
            pod_reference(rejected.pod),
            reasons.FAILED_VALIDATION,
            "Error validating pod "
            f"{rejected.pod.name}_{rejected.pod.namespace}({rejected.pod.uid}) "
            f"from {rejected.source} {rejected.message}, ignoring",
        )
