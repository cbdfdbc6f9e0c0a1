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
from podstatus.workers.admission.admit import Admission, Rejected, rejected_status
from podstatus.workers.admission.pod_limits import find_excess
from podstatus.workers.admission.resource_fit import Taken
from podstatus.workers.allocation.allocations import Grants
from podstatus.workers.allocation.request_totals import Occupancy
from podstatus.workers.allocation.resize_controller import Resizes
from podstatus.workers.lifecycle.pod_registry import Lives
from podstatus.workers.lifecycle.state_machine import Stage
from podstatus.workers.pod_workers import PodWorkers

logger = logging.getLogger(__name__)

Admit = Callable[[Pod, Taken], Admission]
"""Whether a pod fits beside what others have of this node."""


class Dispatcher:
    """Takes the changes of the sources, one after the other; it never waits."""

    def __init__(
        self,
        directory: PodManager,
        lives: Lives,
        workers: PodWorkers,
        statuses: StatusManager,
        recorder: EventRecorder,
        grants: Grants,
        occupancy: Occupancy,
        *,
        admit: Admit,
        startup_latency: StartupLatencyTracker,
        on_mirror: Callable[[], None],
        clock: Clock,
        gates: FeatureGates | None = None,
        resizes: Resizes | None = None,
        on_directory: Callable[[PodUID], None] = lambda _: None,
    ) -> None:
        """`resizes` is told of pods that ask for other resources than `grants` has for them,
        `on_directory` of all that the directory has anew, or has no more.
        """
        self._directory = directory
        self._lives = lives
        self._workers = workers
        self._statuses = statuses
        self._recorder = recorder
        self._grants = grants
        self._occupancy = occupancy
        self._admit = admit
        self._startup_latency = startup_latency
        self._on_mirror = on_mirror
        self._clock = clock
        self._gates = gates or FeatureGates()
        self._resizes = resizes
        self._on_directory = on_directory

    def handle(self, change: PodConfigChange) -> None:
        """Take one change."""
        match change:
            case PodAdded(pods):
                for pod in pods:
                    self._added_alone(pod)
                self._statuses.backfill_pod_resize_conditions(
                    pod for pod in pods if not is_mirror_pod(pod)
                )
                for pod in pods:
                    self._look_at_resources(pod)
            case PodUpdated(pod) | PodDeleting(pod):
                pod = self._bounded(pod)
                self._observe(pod)
                self._hand_over(pod)
                self._look_at_resources(pod)
            case PodReconciled(pod):
                pod = self._bounded(pod)
                self._observe(pod)
                if not is_mirror_pod(pod) and need_to_reconcile_pod_readiness(pod):
                    self._hand_over(pod)
            case PodRemoved(pod):
                self._removed(pod)

    def _bounded(self, pod: Pod) -> Pod:
        """The pod; with the spec that was admitted, if the new one is too large for the node.

        The containers of a pod cannot change, except that ephemeral ones are added.
        """
        known = self._directory.pod_by_uid(pod.uid)
        if known is None or known.spec is pod.spec or self._lives.get(pod.uid) is None:
            return pod
        if (excess := find_excess(pod)) is None or find_excess(known) is not None:
            return pod
        logger.warning(
            "pod outgrew the node, its new spec is ignored: pod=%s/%s uid=%s why=%s",
            *pod.full_name,
            pod.uid,
            excess.message,
        )
        return structs.replace(pod, spec=known.spec)

    def _observe(self, pod: Pod) -> None:
        self._directory.update_pod(pod)
        self._on_directory(pod.uid)
        self._statuses.pod_observed(pod.uid)
        self._startup_latency.observed_pod_on_watch(pod, Time.from_unix_nanos(self._clock.now()))
        if is_mirror_pod(pod) or is_static_pod(pod):
            self._on_mirror()

    def _added_alone(self, pod: Pod) -> None:
        """Take a new pod; what goes wrong with it is not to cost the others their lives.

        Who is not known here is ended by housekeeping.
        """
        try:
            self._added(pod)
        except Exception as error:
            logger.exception("pod cannot be taken: pod=%s/%s uid=%s", *pod.full_name, pod.uid)
            message = f"GeneralPredicates failed due to {error}, which is unexpected."
            self._reject(pod, Rejected(reason=reasons.UNEXPECTED_ADMISSION_ERROR, message=message))

    def _added(self, pod: Pod) -> None:
        self._observe(pod)
        if is_mirror_pod(pod):
            # What is known of its static pod had nowhere to go until now.
            self._statuses.reconcile()
            return
        if self._lives.get(pod.uid) is None and not is_terminal_phase(pod.status.phase):
            match self._admit(self._grants.granted(pod), self._occupancy.beside(pod.uid)):
                case Rejected() as rejected:
                    self._reject(pod, rejected)
                    return
            self._grants.promise(pod)
        self._hand_over(pod)

    def _look_at_resources(self, pod: Pod) -> None:
        """Have it decided whether a pod that has a worker gets what it asks for."""
        if self._resizes is not None and self._lives.get(pod.uid) is not None:
            self._resizes.look_at(pod)

    def _reject(self, pod: Pod, rejected: Rejected) -> None:
        """Say that the node does not take it; no worker ever hears of it.

        Upstream: rejectPod, kubelet.go v1.36.4.
        """
        logger.info(
            "pod rejected: pod=%s/%s uid=%s reason=%s", *pod.full_name, pod.uid, rejected.reason
        )
        self._recorder.warn(pod_reference(pod), rejected.reason, rejected.message)
        self._statuses.set_pod_status(pod, rejected_status(pod, rejected))

    def _hand_over(self, pod: Pod) -> None:
        """Let the worker of the pod know; one that was rejected has none until it is deleted."""
        if is_mirror_pod(pod):
            return
        life = self._lives.get(pod.uid)
        if life is None:
            known = self._statuses.pod_status(pod.uid)
            if known is not None and is_terminal_phase(known.phase):
                pod = structs.replace(pod, status=known)
        elif not life.gone:
            pod = self._as_it_is(pod)
        self._workers.update(pod)

    def redecide(self, uid: PodUID) -> bool:
        """Somebody else wrote to the status of a pod: have it made anew; whether somebody will."""
        pod, life = self._directory.pod_by_uid(uid), self._lives.get(uid)
        if pod is None or life is None or life.stage is not Stage.SYNC:
            return False
        self._hand_over(pod)
        return True

    def _as_it_is(self, pod: Pod) -> Pod:
        """The pod as we know it: what others wrote of its status does not make it so."""
        known = self._statuses.pod_status(pod.uid)
        if known is None or is_static_pod(pod):
            return pod
        return structs.replace(pod, status=with_own_parts(pod.status, known, self._gates))

    def _removed(self, pod: Pod) -> None:
        self._directory.remove_pod(pod)
        self._on_directory(pod.uid)
        if is_mirror_pod(pod):
            self._on_mirror()
        else:
            self._workers.remove(pod.uid)
            if self._resizes is not None:
                self._resizes.retry()

    def refuse(self, refused: RejectedPod) -> None:
        """Say that a pod is not taken from its source; its twin is there already."""
        self._recorder.warn(
            pod_reference(refused.pod),
            reasons.FAILED_VALIDATION,
            f"Error validating pod {refused.pod.name}_{refused.pod.namespace}({refused.pod.uid}) "
            f"from {refused.source} {refused.message}, ignoring",
        )
