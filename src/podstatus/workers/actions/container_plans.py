"""Plan the init containers and sidecars of a pod, then its regular containers.

Init containers run one after another. The container after a sidecar starts once the sidecar has
started; the sidecar keeps running. The last init container with an attempt marks the progress:
records of earlier ones may have been removed.

Upstream: computeInitContainerActions, kuberuntime_container.go; computePodActions,
kuberuntime_manager.go v1.36.4.
"""

from collections.abc import Sequence
from itertools import compress

import msgspec
from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.workers.actions.model import ContainerKind, StartContainer, StopContainer
from podstatus.workers.actions.pod_view import PodActionInput, stop_unknown

_LABEL = "Init container"


class InitContainerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Stops and starts of init containers and sidecars."""

    done: bool = False
    """Regular containers may run."""
    failed: bool = False
    """An init container failed and will not restart, so the pod has failed."""
    stop: tuple[StopContainer, ...] = ()
    start: tuple[StartContainer, ...] = ()


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """Plan of a single container."""

    passed: bool = False
    """The next init container may run."""
    failed: bool = False
    stop: StopContainer | None = None
    restart: bool = False
    """The container has to be started, also for the first time."""


_RESTART = _Step(restart=True)
_DONE = _Step(passed=True)
_FAILED = _Step(failed=True)


def plan_init_containers(view: PodActionInput) -> InitContainerPlan:
    """Plan init containers and sidecars. The pod must have a usable sandbox."""
    if not view.init or _is_past_init(view):
        return _plan(view, [_passed_step(view, container) for container in view.init], done=True)
    reached = [
        i for i, container in enumerate(view.init) if view.in_current_sandbox(container) is not None
    ]
    if not reached:
        return _plan(view, [_RESTART], done=False)
    at = reached[-1]
    steps = [_passed_step(view, container) for container in view.init[:at]]
    steps.append(_current_step(view, view.init[at]))
    if steps[-1].failed:
        return InitContainerPlan(failed=True)
    done = steps[-1].passed and at == len(view.init) - 1
    if steps[-1].passed and not done:
        steps.append(_RESTART)
    return _plan(view, steps, done=done)


def _is_past_init(view: PodActionInput) -> bool:
    """Whether a regular container exists in this sandbox, so that initialization is done."""
    here = [view.in_current_sandbox(container) for container in view.regular]
    return any(a is not None and a.state is not ContainerRunState.UNKNOWN for a in here)


def _plan(view: PodActionInput, steps: Sequence[_Step], *, done: bool) -> InitContainerPlan:
    """Combine the steps of the first `len(steps)` init containers."""
    starting = compress(view.init, [step.restart for step in steps])
    return InitContainerPlan(
        done=done,
        stop=tuple(step.stop for step in steps if step.stop is not None),
        start=tuple(view.start_action(container, ContainerKind.INIT) for container in starting),
    )


def _passed_step(view: PodActionInput, container: Container) -> _Step:
    """Step of a container before the current one: sidecars keep running, others are done."""
    if not is_restartable_init_container(container):
        return _DONE
    return _sidecar_step(view, container, view.in_current_sandbox(container))


def _current_step(view: PodActionInput, container: Container) -> _Step:
    attempt = view.in_current_sandbox(container)
    if attempt is None or is_restartable_init_container(container):
        return _sidecar_step(view, container, attempt)
    match attempt.state:
        case ContainerRunState.RUNNING:
            return _Step()
        case ContainerRunState.CREATED:
            # Create and start are one step, so the start has failed.
            return _RESTART
        case ContainerRunState.UNKNOWN:
            if view.restarts_when_stopped(container):
                return _Step(stop=stop_unknown(attempt, _LABEL), restart=True)
            return _FAILED
    if attempt.exit_code == 0:
        return _DONE
    return _RESTART if view.restarts_after(container, attempt.exit_code) else _FAILED


def _sidecar_step(
    view: PodActionInput, container: Container, attempt: ContainerFacts | None
) -> _Step:
    """Keep a sidecar running, whatever the pod's restart policy."""
    if attempt is None:
        return _RESTART
    if attempt.state is ContainerRunState.UNKNOWN:
        return _Step(stop=stop_unknown(attempt, _LABEL), restart=True)
    if attempt.state is not ContainerRunState.RUNNING:
        return _RESTART
    fault = view.required_stop(container, attempt)
    started = container.startup_probe is None or bool(view.verdicts.startup.get(attempt.id))
    if fault is None and (stop := view.resize_restart(attempt)) is not None:
        return _Step(passed=started, stop=stop, restart=True)
    if fault is None:
        return _Step(passed=started)
    stop = structs.replace(fault, message=f"{_LABEL} {fault.message}")
    return _Step(passed=started, stop=stop, restart=True)


_REGULAR_LABEL = "Container"


class RegularContainerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Stops and starts of regular containers."""

    alive: bool
    """A container keeps running or will start; otherwise the pod is done."""
    stop: tuple[StopContainer, ...] = ()
    start: tuple[StartContainer, ...] = ()


class _RegularStep(msgspec.Struct, frozen=True, kw_only=True):
    """Plan of a single container."""

    keeps_running: bool = False
    stop: StopContainer | None = None
    restart: bool = False


def plan_regular_containers(view: PodActionInput) -> RegularContainerPlan:
    """Plan the regular containers. All init containers must be done."""
    steps = [_step(view, container) for container in view.regular]
    starting = compress(view.regular, [step.restart for step in steps])
    return RegularContainerPlan(
        alive=any(step.keeps_running or step.restart for step in steps),
        stop=tuple(step.stop for step in steps if step.stop is not None),
        start=tuple(view.start_action(container, ContainerKind.REGULAR) for container in starting),
    )


def _step(view: PodActionInput, container: Container) -> _RegularStep:
    attempt = view.newest(container)
    if attempt is None:
        return _RegularStep(restart=True)
    match attempt.state:
        case ContainerRunState.RUNNING:
            return _running_step(view, container, attempt)
        case ContainerRunState.CREATED:
            # Create and start are one step, so the start has failed.
            return _RegularStep(restart=True)
        case ContainerRunState.UNKNOWN:
            return _RegularStep(stop=stop_unknown(attempt, _REGULAR_LABEL), restart=True)
    return _RegularStep(restart=view.restarts_after(container, attempt.exit_code))


def _running_step(
    view: PodActionInput, container: Container, attempt: ContainerFacts
) -> _RegularStep:
    fault = view.required_stop(container, attempt)
    if fault is None and (stop := view.resize_restart(attempt)) is not None:
        return _RegularStep(stop=stop, restart=True)
    if fault is None:
        return _RegularStep(keeps_running=True)
    # A changed definition restarts the container, whatever its restart policy.
    restart = view.is_changed(container, attempt) or view.restarts_when_stopped(container)
    message = f"{_REGULAR_LABEL} {fault.message}" + (", will be restarted" if restart else "")
    return _RegularStep(stop=structs.replace(fault, message=message), restart=restart)
