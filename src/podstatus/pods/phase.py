"""The phase of a pod, and its active deadline.

Upstream: getPhase, kubelet_pods.go; pkg/kubelet/active_deadline.go v1.36.4.
"""

from collections.abc import Sequence
from enum import Enum

import msgspec

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, is_static_pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import ContainerStateTerminated, ContainerStatus
from podstatus.kube.restart_policy import container_should_restart, is_restartable_init_container
from podstatus.kube.scalars.time import Time

DEADLINE_EXCEEDED = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"

_SECOND = 1_000_000_000


def past_active_deadline(spec: PodSpec, start_time: Time | None, now: Time) -> bool:
    """Whether a pod that started then has used up its time; one that has not started has not."""
    if spec.active_deadline_seconds is None or not start_time:
        return False
    return now - start_time >= spec.active_deadline_seconds * _SECOND


RESTARTING_ALL_CONTAINERS = "RestartingAllContainers"
"""Reason of an exit that the kubelet caused to restart the whole pod in place."""


class _Life(Enum):
    MISSING = "no status at all"
    BLANK = "a status without a state"
    WAITING = "waiting for its first start"
    RUNNING = "running"
    ENDED = "has ended and is not running again"


class _Container(msgspec.Struct, frozen=True, kw_only=True):
    """A container of the spec together with what is known about it."""

    spec: Container
    life: _Life
    exit: ContainerStateTerminated | None = None
    ended_now: bool = False
    """Shown as terminated, not as waiting for its next start."""
    started: bool = False

    def restarts(self, pod: PodSpec, gates: FeatureGates) -> bool:
        if self.exit is None:
            return False
        if (
            gates.restart_all_containers_on_container_exits
            and self.exit.reason == RESTARTING_ALL_CONTAINERS
        ):
            return True
        return container_should_restart(self.spec, pod, self.exit.exit_code, gates)


def get_phase(
    pod: Pod,
    container_statuses: Sequence[ContainerStatus] | None,
    *,
    pod_is_terminal: bool,
    pod_has_initialized: bool,
    gates: FeatureGates,
) -> str:
    """The phase that the containers, init containers and sidecars of the pod add up to."""
    by_name = {status.name: status for status in reversed(container_statuses or ())}
    init: list[_Container] = []
    sidecars: list[_Container] = []
    for container in pod.spec.init_containers or ():
        found = _look(container, by_name.get(container.name))
        (sidecars if is_restartable_init_container(container) else init).append(found)
    regular = [_look(c, by_name.get(c.name)) for c in pod.spec.containers or ()]

    if _initialization_failed(init, pod.spec, gates):
        return "Failed"
    if _is_pending(init, sidecars, regular, pod_has_initialized=pod_has_initialized):
        return "Pending"
    lives = {c.life for c in (*sidecars, *regular)}
    if _Life.MISSING in lives or _Life.BLANK in lives:
        return "Pending"
    if _Life.RUNNING in lives:
        return "Running"
    if not regular:
        return "Pending"
    return _phase_after_the_end(
        pod, regular, can_restart=not pod_is_terminal or is_static_pod(pod), gates=gates
    )


def _look(container: Container, status: ContainerStatus | None) -> _Container:
    if status is None:
        return _Container(spec=container, life=_Life.MISSING)
    state, last = status.state, status.last_state.terminated
    if state.running is not None:
        return _Container(spec=container, life=_Life.RUNNING, started=bool(status.started))
    if state.terminated is not None:
        return _Container(spec=container, life=_Life.ENDED, exit=state.terminated, ended_now=True)
    if state.waiting is None:
        return _Container(spec=container, life=_Life.BLANK)
    if last is None:
        return _Container(spec=container, life=_Life.WAITING)
    return _Container(spec=container, life=_Life.ENDED, exit=last)


def _initialization_failed(init: Sequence[_Container], spec: PodSpec, gates: FeatureGates) -> bool:
    failed = [c for c in init if c.exit is not None and c.exit.exit_code != 0]
    if gates.container_restart_rules:
        return any(not c.restarts(spec, gates) for c in failed)
    return bool(failed) and spec.restart_policy == "Never"


def _is_pending(
    init: Sequence[_Container],
    sidecars: Sequence[_Container],
    regular: Sequence[_Container],
    *,
    pod_has_initialized: bool,
) -> bool:
    if any(c.life is not _Life.ENDED for c in init):
        return True
    # A sidecar that restarts does not take a pod back to Pending once it was initialized.
    if not pod_has_initialized and any(_is_starting(c) for c in sidecars):
        return True
    return any(c.life is _Life.WAITING for c in (*sidecars, *regular))


def _is_starting(sidecar: _Container) -> bool:
    if sidecar.life is _Life.RUNNING:
        return not sidecar.started
    return sidecar.life in (_Life.WAITING, _Life.BLANK)


def _phase_after_the_end(
    pod: Pod, regular: Sequence[_Container], *, can_restart: bool, gates: FeatureGates
) -> str:
    """Every regular container has ended: over, or about to restart?"""
    succeeded = all(c.ended_now and c.exit is not None and c.exit.exit_code == 0 for c in regular)
    if can_restart and _comes_back(pod.spec, regular, succeeded=succeeded, gates=gates):
        return "Running"
    return "Succeeded" if succeeded else "Failed"


def _comes_back(
    spec: PodSpec, regular: Sequence[_Container], *, succeeded: bool, gates: FeatureGates
) -> bool:
    if gates.container_restart_rules:
        return any(c.restarts(spec, gates) for c in regular)
    if spec.restart_policy == "Always":
        return True
    return not succeeded and spec.restart_policy != "Never"
