"""How far a pod's initialization has come, and what takes it further.

Init containers run one after another. A sidecar lets the next one go as soon as it has
started, and is kept running from then on. The furthest one of which there is an attempt tells
how far it came: records of those before it may have been removed.

Upstream: computeInitContainerActions, kuberuntime_container.go v1.36.4.
"""

from collections.abc import Sequence

import msgspec
from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.workers.actions.model import ContainerKind, StartContainer, StopContainer
from podstatus.workers.actions.pod_view import PodView, try_stopping

_WHAT = "Init container"


class InitPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about init containers and sidecars."""

    done: bool = False
    """Regular containers may run."""
    failed: bool = False
    """One has ended for good without success, and with it the pod."""
    stop: tuple[StopContainer, ...] = ()
    start: tuple[StartContainer, ...] = ()


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about one of them."""

    passed: bool = False
    """The next one may run."""
    failed: bool = False
    stop: StopContainer | None = None
    again: bool = False
    """It has to be started, once more or for the first time."""


_AGAIN = _Step(again=True)
_DONE = _Step(passed=True)
_FAILED = _Step(failed=True)


def plan_init_containers(view: PodView) -> InitPlan:
    """What has to be done next, if the sandbox is there."""
    if not view.init or _is_past_init(view):
        return _plan(view, [_kept(view, container) for container in view.init], done=True)
    reached = [i for i, container in enumerate(view.init) if view.here(container) is not None]
    if not reached:
        return _plan(view, [_AGAIN], done=False)
    at = reached[-1]
    steps = [_kept(view, container) for container in view.init[:at]]
    steps.append(_furthest(view, view.init[at]))
    if steps[-1].failed:
        return InitPlan(failed=True)
    done = steps[-1].passed and at == len(view.init) - 1
    if steps[-1].passed and not done:
        steps.append(_AGAIN)
    return _plan(view, steps, done=done)


def _is_past_init(view: PodView) -> bool:
    """Whether a regular container was made in this sandbox, so that all of these were done."""
    here = [view.here(container) for container in view.regular]
    return any(a is not None and a.state is not ContainerRunState.UNKNOWN for a in here)


def _plan(view: PodView, steps: Sequence[_Step], *, done: bool) -> InitPlan:
    """The steps of as many init containers as there are steps."""
    starting = [c for c, step in zip(view.init, steps, strict=False) if step.again]
    return InitPlan(
        done=done,
        stop=tuple(step.stop for step in steps if step.stop is not None),
        start=tuple(view.to_start(container, ContainerKind.INIT) for container in starting),
    )


def _kept(view: PodView, container: Container) -> _Step:
    """One behind which the pod has come: a sidecar goes on, any other has had its turn."""
    if not is_restartable_init_container(container):
        return _DONE
    return _sidecar(view, container, view.here(container))


def _furthest(view: PodView, container: Container) -> _Step:
    attempt = view.here(container)
    if attempt is None or is_restartable_init_container(container):
        return _sidecar(view, container, attempt)
    match attempt.state:
        case ContainerRunState.RUNNING:
            return _Step()
        case ContainerRunState.CREATED:
            # Made and started is one step: the start failed.
            return _AGAIN
        case ContainerRunState.UNKNOWN:
            if view.restarts_when_stopped(container):
                return _Step(stop=try_stopping(attempt, _WHAT), again=True)
            return _FAILED
    if attempt.exit_code == 0:
        return _DONE
    return _AGAIN if view.restarts_after(container, attempt.exit_code) else _FAILED


def _sidecar(view: PodView, container: Container, attempt: ContainerFacts | None) -> _Step:
    """A sidecar runs, whatever the policy of the pod."""
    if attempt is None:
        return _AGAIN
    if attempt.state is ContainerRunState.UNKNOWN:
        return _Step(stop=try_stopping(attempt, _WHAT), again=True)
    if attempt.state is not ContainerRunState.RUNNING:
        return _AGAIN
    fault = view.fault(container, attempt)
    started = container.startup_probe is None or bool(view.verdicts.startup.get(attempt.id))
    if fault is None and (stop := view.resize_restart(attempt)) is not None:
        return _Step(passed=started, stop=stop, again=True)
    if fault is None:
        return _Step(passed=started)
    stop = structs.replace(fault, message=f"{_WHAT} {fault.message}")
    return _Step(passed=started, stop=stop, again=True)
