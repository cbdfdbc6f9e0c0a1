"""The phase of a pod.

Upstream: getPhase, kubelet_pods.go v1.36.4.
"""

from collections.abc import Sequence
from enum import Enum, auto

import msgspec

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, is_static_pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import ContainerStateTerminated, ContainerStatus
from podstatus.kube.restart_policy import container_should_restart, is_restartable_init_container

RESTARTING_ALL_CONTAINERS = "RestartingAllContainers"
"""Reason of an exit that the kubelet caused to restart the whole pod in place."""


class _ContainerPhase(Enum):
    MISSING = auto()
    """The container has no status."""
    NO_STATE = auto()
    WAITING = auto()
    """For the first start."""
    RUNNING = auto()
    TERMINATED = auto()
    """Also while it waits for a restart."""


class _ContainerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A container of the spec and the state derived from its status."""

    spec: Container
    phase: _ContainerPhase
    exit: ContainerStateTerminated | None = None
    is_terminated: bool = False
    """The current state is terminated, not waiting for the next start."""
    is_starting: bool = False
    """It runs, and its startup probe has not succeeded."""

    def restarts(self, pod: PodSpec, gates: FeatureGates) -> bool:
        return self.exit is not None and (
            (
                gates.restart_all_containers_on_container_exits
                and self.exit.reason == RESTARTING_ALL_CONTAINERS
            )
            or container_should_restart(self.spec, pod, self.exit.exit_code, gates)
        )


def get_phase(
    pod: Pod,
    container_statuses: Sequence[ContainerStatus] | None,
    *,
    pod_is_terminal: bool,
    pod_has_initialized: bool,
    gates: FeatureGates,
) -> str:
    """Return the phase, computed from all regular, init and sidecar containers."""
    by_name = {status.name: status for status in reversed(container_statuses or ())}
    init: list[_ContainerInfo] = []
    sidecars: list[_ContainerInfo] = []
    for container in pod.spec.init_containers or ():
        info = _classify(container, by_name.get(container.name))
        (sidecars if is_restartable_init_container(container) else init).append(info)
    regular = [_classify(c, by_name.get(c.name)) for c in pod.spec.containers or ()]

    if _initialization_failed(init, pod.spec, gates):
        return "Failed"
    if _is_pending(init, sidecars, regular, pod_has_initialized=pod_has_initialized):
        return "Pending"
    phases = {c.phase for c in (*sidecars, *regular)}
    if _ContainerPhase.MISSING in phases or _ContainerPhase.NO_STATE in phases:
        return "Pending"
    if _ContainerPhase.RUNNING in phases:
        return "Running"
    if not regular:
        return "Pending"
    return _terminal_phase(
        pod, regular, can_restart=not pod_is_terminal or is_static_pod(pod), gates=gates
    )


def _classify(container: Container, status: ContainerStatus | None) -> _ContainerInfo:
    if status is None:
        return _ContainerInfo(spec=container, phase=_ContainerPhase.MISSING)
    state, last = status.state, status.last_state.terminated
    if state.running is not None:
        return _ContainerInfo(
            spec=container, phase=_ContainerPhase.RUNNING, is_starting=not status.started
        )
    if state.terminated is not None:
        return _ContainerInfo(
            spec=container,
            phase=_ContainerPhase.TERMINATED,
            exit=state.terminated,
            is_terminated=True,
        )
    if state.waiting is None:
        return _ContainerInfo(spec=container, phase=_ContainerPhase.NO_STATE)
    if last is None:
        return _ContainerInfo(spec=container, phase=_ContainerPhase.WAITING)
    return _ContainerInfo(spec=container, phase=_ContainerPhase.TERMINATED, exit=last)


def _initialization_failed(
    init: Sequence[_ContainerInfo], spec: PodSpec, gates: FeatureGates
) -> bool:
    failed = [c for c in init if c.exit is not None and c.exit.exit_code != 0]
    if gates.container_restart_rules:
        return any(not c.restarts(spec, gates) for c in failed)
    return bool(failed) and spec.restart_policy == "Never"


def _is_pending(
    init: Sequence[_ContainerInfo],
    sidecars: Sequence[_ContainerInfo],
    regular: Sequence[_ContainerInfo],
    *,
    pod_has_initialized: bool,
) -> bool:
    if any(c.phase is not _ContainerPhase.TERMINATED for c in init):
        return True
    # A restarting sidecar does not make a pod Pending again once it was initialized.
    if not pod_has_initialized and any(c.is_starting for c in sidecars):
        return True
    return any(c.phase is _ContainerPhase.WAITING for c in (*sidecars, *regular))


def _terminal_phase(
    pod: Pod, regular: Sequence[_ContainerInfo], *, can_restart: bool, gates: FeatureGates
) -> str:
    """Return the phase when every regular container has ended; Running if any will restart."""
    succeeded = all(
        c.is_terminated and c.exit is not None and c.exit.exit_code == 0 for c in regular
    )
    if can_restart and _will_restart(pod.spec, regular, succeeded=succeeded, gates=gates):
        return "Running"
    return "Succeeded" if succeeded else "Failed"


def _will_restart(
    spec: PodSpec, regular: Sequence[_ContainerInfo], *, succeeded: bool, gates: FeatureGates
) -> bool:
    if gates.container_restart_rules:
        return any(c.restarts(spec, gates) for c in regular)
    if spec.restart_policy == "Always":
        return True
    return not succeeded and spec.restart_policy != "Never"
