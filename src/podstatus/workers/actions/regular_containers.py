"""Plan the regular containers of an initialized pod.

Upstream: computePodActions, kuberuntime_manager.go v1.36.4.
"""

import msgspec
from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.workers.actions.model import ContainerKind, StartContainer, StopContainer
from podstatus.workers.actions.pod_view import PodActionInput, stop_unknown

_LABEL = "Container"


class RegularContainerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Stops and starts of regular containers."""

    alive: bool
    """A container keeps running or will start; otherwise the pod is done."""
    stop: tuple[StopContainer, ...] = ()
    start: tuple[StartContainer, ...] = ()


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """Plan of a single container."""

    keeps_running: bool = False
    stop: StopContainer | None = None
    restart: bool = False


def plan_regular_containers(view: PodActionInput) -> RegularContainerPlan:
    """Plan the regular containers. All init containers must be done."""
    steps = [_step(view, container) for container in view.regular]
    starting = [c for c, step in zip(view.regular, steps, strict=True) if step.restart]
    return RegularContainerPlan(
        alive=any(step.keeps_running or step.restart for step in steps),
        stop=tuple(step.stop for step in steps if step.stop is not None),
        start=tuple(view.start_action(container, ContainerKind.REGULAR) for container in starting),
    )


def _step(view: PodActionInput, container: Container) -> _Step:
    attempt = view.newest(container)
    if attempt is None:
        return _Step(restart=True)
    match attempt.state:
        case ContainerRunState.RUNNING:
            return _running_step(view, container, attempt)
        case ContainerRunState.CREATED:
            # Create and start are one step, so the start has failed.
            return _Step(restart=True)
        case ContainerRunState.UNKNOWN:
            return _Step(stop=stop_unknown(attempt, _LABEL), restart=True)
    return _Step(restart=view.restarts_after(container, attempt.exit_code))


def _running_step(view: PodActionInput, container: Container, attempt: ContainerFacts) -> _Step:
    fault = view.required_stop(container, attempt)
    if fault is None and (stop := view.resize_restart(attempt)) is not None:
        return _Step(stop=stop, restart=True)
    if fault is None:
        return _Step(keeps_running=True)
    # A changed definition restarts the container, whatever its restart policy.
    restart = view.is_changed(container, attempt) or view.restarts_when_stopped(container)
    message = f"{_LABEL} {fault.message}" + (", will be restarted" if restart else "")
    return _Step(stop=structs.replace(fault, message=message), restart=restart)
