"""Compute the next actions of a pod from its spec and the runtime's state.

Level-based: called after every event, it keeps no state of its own. It differs from upstream where
upstream leaves a pod stuck or restarts containers that have exited for good: whether a pod gets
another sandbox is decided container by container, not by the pod's restart policy alone.

Upstream: computePodActions and SyncPod, kuberuntime_manager.go v1.36.4.
"""

from collections.abc import Mapping

from msgspec import structs

from podstatus.kube.by_name import all_by_name
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.kube.restart_policy import (
    RESTART_ALL_CONTAINERS,
    find_matching_container_restart_rule,
    is_restartable_init_container,
)
from podstatus.kube.scalars.duration import format_duration
from podstatus.pods.container_status import StartFailure
from podstatus.status.decide.generate_conditions import (
    has_usable_sandbox,
    should_all_containers_restart,
)
from podstatus.workers.actions.container_plans import (
    RegularContainerPlan,
    plan_init_containers,
    plan_regular_containers,
)
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.actions.model import (
    ContainerKind,
    ContainerProbeVerdicts,
    PodActions,
    StartContainer,
    StopContainer,
)
from podstatus.workers.actions.pod_view import PodActionInput
from podstatus.workers.resize.plan import NO_RESIZE, ResizePlan

CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"
_NO_VERDICTS = ContainerProbeVerdicts()
_DEFAULT_GATES = FeatureGates()


def compute_pod_actions(
    pod: Pod,
    facts: PodFacts,
    *,
    monotonic: int,
    crash_loop_backoff: CrashLoopBackoff,
    verdicts: ContainerProbeVerdicts = _NO_VERDICTS,
    gates: FeatureGates = _DEFAULT_GATES,
    resize: ResizePlan = NO_RESIZE,
) -> PodActions:
    """Actions that are due at `monotonic`, ns. None for a pod with a deletion timestamp: it stops.

    `crash_loop_backoff`: with the exits of `facts`.
    """
    if pod.metadata.deletion_timestamp is not None:
        return PodActions()
    view = PodActionInput(
        pod=pod,
        facts=facts,
        verdicts=verdicts,
        gates=gates,
        by_name=all_by_name(facts.containers),
        resize=resize,
    )
    actions = _apply_backoff(view, _actions_without_backoff(view), crash_loop_backoff, monotonic)
    return structs.replace(actions, resize=_containers_to_resize(view, actions))


def format_pod(pod: Pod) -> str:
    """The pod as the kubelet names it in messages: `name_namespace(uid)`."""
    return f"{pod.name}_{pod.namespace}({pod.uid})"


def _actions_without_backoff(view: PodActionInput) -> PodActions:
    """Actions as if no container were in back-off."""
    usable = has_usable_sandbox(view.pod, view.facts)
    gate = view.gates.restart_all_containers_on_container_exits
    if gate and should_all_containers_restart(view.pod, view.facts, None):
        return _restart_all(view, in_place=usable)
    return _actions_in_sandbox(view) if usable else _actions_for_new_sandbox(view)


def _restart_all(view: PodActionInput, *, in_place: bool) -> PodActions:
    """Restart the whole pod, because the exit of a container requests it.

    All containers are stopped without a grace period and removed; the next call starts new ones.
    """
    targets: list[ContainerFacts] = []
    sources: list[ContainerFacts] = []
    for container in (*view.regular, *view.init):
        for attempt in view.attempts(container):
            (sources if _requests_restart_all(container, attempt) else targets).append(attempt)
    running = [a for a in targets if a.state is not ContainerRunState.EXITED]
    return PodActions(
        stop_pod=not in_place,
        stop=tuple(
            StopContainer(container=attempt, message="killing", grace_seconds=0)
            for attempt in (running if in_place else ())
        ),
        remove=(*targets, *sources),
        start_pod=not in_place,
    )


def _requests_restart_all(container: Container, attempt: ContainerFacts) -> bool:
    if attempt.state is not ContainerRunState.EXITED:
        return False
    rule = find_matching_container_restart_rule(container, attempt.exit_code)
    return rule is not None and rule.action == RESTART_ALL_CONTAINERS


def _actions_for_new_sandbox(view: PodActionInput) -> PodActions:
    """Create a sandbox and start with the first init container, unless the pod is done.

    Exited init containers are removed, or the pod would count as initialized.
    """
    regular = [container for container in view.regular if _will_restart(view, container)]
    if not regular or any(_failed_permanently(view, container) for container in view.init):
        return _stop_if_running(view)
    kind = ContainerKind.INIT if view.init else ContainerKind.REGULAR
    return PodActions(
        stop_pod=bool(view.facts.sandboxes or view.facts.containers),
        remove=tuple(a for container in view.init for a in view.attempts(container)),
        start_pod=True,
        start=tuple(view.start_action(container, kind) for container in view.init[:1] or regular),
    )


def _will_restart(view: PodActionInput, container: Container) -> bool:
    """Whether a container starts in a new sandbox; running ones exit with the old sandbox."""
    attempt = view.newest(container)
    if attempt is None or attempt.state is ContainerRunState.CREATED:
        return True
    if attempt.state is ContainerRunState.EXITED:
        return view.restarts_after(container, attempt.exit_code)
    return view.restarts_when_stopped(container)


def _failed_permanently(view: PodActionInput, container: Container) -> bool:
    """Whether an init container has failed, or is stopping, and will not restart."""
    if is_restartable_init_container(container):
        return False
    attempt = view.newest(container)
    if attempt is None:
        return False
    if attempt.state is ContainerRunState.EXITED and attempt.exit_code == 0:
        return False
    return not _will_restart(view, container)


def _stop_if_running(view: PodActionInput) -> PodActions:
    """Stop the pod: no container needs to run, and sidecars do not keep a pod alive."""
    return PodActions(stop_pod=view.has_anything_to_stop())


def _actions_in_sandbox(view: PodActionInput) -> PodActions:
    """Actions of a pod with a usable sandbox; stops the pod if it is done."""
    init = plan_init_containers(view)
    regular = plan_regular_containers(view) if init.done else RegularContainerPlan(alive=True)
    if init.failed or not regular.alive:
        return _stop_if_running(view)
    return PodActions(
        stop=(*init.stop, *regular.stop),
        start=(*_ephemeral_starts(view), *init.start, *regular.start),
    )


def _containers_to_resize(view: PodActionInput, actions: PodActions) -> Mapping[str, str] | None:
    """Containers to resize, name -> ID. Empty: resize the pod level only. None: no resize.

    A new sandbox is created with the allocated size, and a stopping one needs no resize.
    """
    plan = view.resize
    is_replaced = actions.stop_pod or actions.start_pod or actions.remove
    if is_replaced or not has_usable_sandbox(view.pod, view.facts):
        return None
    starting = {item.container.name for item in actions.start}
    is_needed = plan.in_place or plan.pod_level or starting & (plan.restart | plan.idle)
    return plan.in_place if is_needed else None


def _ephemeral_starts(view: PodActionInput) -> tuple[StartContainer, ...]:
    """Ephemeral containers start once, also during initialization."""
    return tuple(
        view.start_action(container, ContainerKind.EPHEMERAL)
        for container in view.pod.spec.ephemeral_containers or ()
        if view.newest(container) is None
    )


def _apply_backoff(
    view: PodActionInput, actions: PodActions, crash_loop_backoff: CrashLoopBackoff, monotonic: int
) -> PodActions:
    """Move the starts that are in back-off from `start` to `waiting`.

    Upstream: doBackOff, kuberuntime_manager.go v1.36.4.
    """
    uid = view.pod.uid
    start: list[StartContainer] = []
    waiting: dict[str, StartFailure] = {}
    left: list[float] = []
    for item in actions.start:
        name = item.container.name
        seconds = crash_loop_backoff.remaining(uid, name, monotonic)
        if item.last_exit is None or not seconds:
            start.append(item)
            continue
        waiting[name] = _backoff_failure(view.pod, name, crash_loop_backoff.delay(uid, name))
        left.append(seconds)
    if not waiting:
        return actions
    return structs.replace(actions, start=tuple(start), waiting=waiting, requeue_after=min(left))


def _backoff_failure(pod: Pod, container: str, seconds: float) -> StartFailure:
    return StartFailure(
        reason=CRASH_LOOP_BACK_OFF,
        message=f"back-off {format_duration(seconds)} restarting failed "
        f"container={container} pod={format_pod(pod)}",
    )
