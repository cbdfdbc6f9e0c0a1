"""What probes say about containers, put into a status: `started` and `ready`.

Upstream: UpdatePodStatus, pkg/kubelet/prober/prober_manager.go v1.36.4.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import msgspec
from msgspec import structs

from podstatus.kube.by_name import first_by_name
from podstatus.kube.conditions import READY, is_condition_true
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.time import UNSET_TIME, Time

_RESTART_GRACE_NS = 10 * 1_000_000_000
"""Upstream's: a container younger than that may have been started by the agent that went."""

WasReady: TypeAlias = Callable[[ContainerStatus], bool]


class Prober(Protocol):
    """Whoever knows which containers have started and which are ready."""

    def apply_to(self, pod: Pod, status: PodStatus, old: PodStatus) -> PodStatus:
        """The status with `started` and `ready` of its containers set; `old` was shown before."""


class ProbeResults(msgspec.Struct, frozen=True, kw_only=True):
    """The latest verdicts of the probes, by container ID.

    A running container without a probe has started and is ready. One with a probe that has
    not spoken yet is not, unless it was before: after a restart of the agent probes have not
    spoken yet, and that must not take a pod out of service.
    """

    started: Mapping[str, bool] = {}
    ready: Mapping[str, bool] = {}
    prober_start: Time = UNSET_TIME
    """When this agent began to probe. If given, "before" is judged as the kubelet does: the pod
    is shown as ready, and the container began 10 s or more before that. If not, a container
    was ready before if this very container is shown as ready."""

    def apply_to(self, pod: Pod, status: PodStatus, old: PodStatus) -> PodStatus:
        """The status with `started` and `ready` of its containers set; `old` was shown before."""
        was_ready = self._was_ready(pod, old)
        regular, init = first_by_name(pod.spec.containers), first_by_name(pod.spec.init_containers)
        return structs.replace(
            status,
            container_statuses=tuple(
                self._update_regular(was_ready, regular.get(s.name) or Container(name=s.name), s)
                for s in status.container_statuses or ()
            ),
            init_container_statuses=tuple(
                self._update_init(was_ready, init.get(s.name) or Container(name=s.name), s)
                for s in status.init_container_statuses or ()
            ),
        )

    def _was_ready(self, pod: Pod, old: PodStatus) -> WasReady:
        """Whether a container was ready before, of which no probe has spoken yet."""
        if self.prober_start:
            is_shown = is_condition_true(pod.status.conditions, READY)
            return lambda status: is_shown and self._was_running_before_start(status)
        listed = (*(old.container_statuses or ()), *(old.init_container_statuses or ()))
        shown = {status.container_id for status in listed if status.ready}
        return lambda status: status.container_id in shown

    def _update_regular(
        self, was_ready: WasReady, container: Container, status: ContainerStatus
    ) -> ContainerStatus:
        started = self._has_started(container, status)
        ready = self._is_ready(was_ready, container, status) if started else status.ready
        return structs.replace(status, started=started, ready=ready)

    def _update_init(
        self, was_ready: WasReady, container: Container, status: ContainerStatus
    ) -> ContainerStatus:
        if is_restartable_init_container(container):
            return self._update_regular(was_ready, container, status)
        ended = status.state.terminated
        return structs.replace(
            status,
            started=self._has_started(container, status),
            ready=status.ready or (ended is not None and ended.exit_code == 0),
        )

    def _has_started(self, container: Container, status: ContainerStatus) -> bool:
        if status.state.running is None:
            return False
        verdict = self.started.get(status.container_id)
        if verdict is not None:
            return verdict
        # It had started before the agent did.
        return bool(status.started) or container.startup_probe is None

    def _is_ready(self, was_ready: WasReady, container: Container, status: ContainerStatus) -> bool:
        if container.readiness_probe is None:
            return True
        verdict = self.ready.get(status.container_id)
        return was_ready(status) if verdict is None else verdict

    def _was_running_before_start(self, status: ContainerStatus) -> bool:
        running = status.state.running
        if running is None:
            return False
        return UNSET_TIME < running.started_at < self.prober_start - _RESTART_GRACE_NS
