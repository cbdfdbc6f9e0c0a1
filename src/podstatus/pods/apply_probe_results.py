"""Apply probe results to a status: `started` and `ready` of each container.

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
"""Upstream's value: a container younger than this may have been started by the previous agent."""

_NO_CONTAINER = Container()
"""For a status whose container is not in the spec: it has no probes."""

WasReady: TypeAlias = Callable[[ContainerStatus], bool]


class Prober(Protocol):
    """Sets `started` and `ready` of containers."""

    def apply_to(self, pod: Pod, status: PodStatus, old: PodStatus) -> PodStatus:
        """Return `status` with `started` and `ready` set; `old` is the previous status."""


class ProbeResults(msgspec.Struct, frozen=True, kw_only=True):
    """The latest probe results, by container ID.

    A running container without a probe has started and is ready. A container whose probe has no
    result yet is not, unless it was ready before: after a restart of the agent no probe has a
    result, and the pod must stay in service.
    """

    started: Mapping[str, bool] = {}
    """Results of startup probes."""
    ready: Mapping[str, bool] = {}
    """Results of readiness probes."""
    prober_start: Time = UNSET_TIME
    """When this agent started probing. If set, "ready before" is decided as in the kubelet: the pod
    has the Ready condition, and the container was started more than 10 s before this time.
    Otherwise the previous status has the same container ID as ready."""

    def apply_to(self, pod: Pod, status: PodStatus, old: PodStatus) -> PodStatus:
        """Return `status` with `started` and `ready` set; `old` is the previous status."""
        was_ready = self._was_ready(pod, old)
        regular, init = first_by_name(pod.spec.containers), first_by_name(pod.spec.init_containers)
        return structs.replace(
            status,
            container_statuses=tuple(
                self._update_regular(was_ready, regular.get(s.name, _NO_CONTAINER), s)
                for s in status.container_statuses or ()
            ),
            init_container_statuses=tuple(
                self._update_init(was_ready, init.get(s.name, _NO_CONTAINER), s)
                for s in status.init_container_statuses or ()
            ),
        )

    def _was_ready(self, pod: Pod, old: PodStatus) -> WasReady:
        """Return the predicate for containers whose readiness probe has no result yet."""
        if self.prober_start:
            pod_was_ready = is_condition_true(pod.status.conditions, READY)
            return lambda status: pod_was_ready and self._was_running_before_start(status)
        statuses = (*(old.container_statuses or ()), *(old.init_container_statuses or ()))
        ready_ids = {status.container_id for status in statuses if status.ready}
        return lambda status: status.container_id in ready_ids

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
        result = self.started.get(status.container_id)
        if result is not None:
            return result
        # It may have started under the previous agent.
        return bool(status.started) or container.startup_probe is None

    def _is_ready(self, was_ready: WasReady, container: Container, status: ContainerStatus) -> bool:
        if container.readiness_probe is None:
            return True
        result = self.ready.get(status.container_id)
        return was_ready(status) if result is None else result

    def _was_running_before_start(self, status: ContainerStatus) -> bool:
        running = status.state.running
        latest = self.prober_start - _RESTART_GRACE_NS
        return running is not None and UNSET_TIME < running.started_at < latest
