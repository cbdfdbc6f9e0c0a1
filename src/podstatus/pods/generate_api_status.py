"""Generate the whole status of a pod from runtime facts and the previous status.

A node calls this for every change and passes the result to the status manager:

    facts = PodFacts(ips=("10.1.2.3",), containers=(...))
    status = generate_api_pod_status(
        pod, facts, now=now, old_status=manager.pod_status(pod.uid), host_ips=("192.168.7.1",)
    )
    manager.set_pod_status(pod, status)

`pod` has the spec that the node admitted and allocated, and the status of the API server. The
manager adds transition times, start time and observed generation.

Upstream: generateAPIPodStatus, kubelet_pods.go v1.36.4.
"""

from collections.abc import Mapping, Sequence

from msgspec import structs

from podstatus.kube.by_name import first_by_name
from podstatus.kube.conditions import (
    DISRUPTION_TARGET,
    POD_SCHEDULED,
    find_condition,
    pod_condition_by_kubelet,
    replace_or_append_pod_condition,
)
from podstatus.kube.encoding.frozen_copy import freeze, require_type
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod, is_terminal_phase
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.kube.pod_resources import pod_requests
from podstatus.kube.qos import get_pod_qos
from podstatus.kube.restart_policy import all_containers_could_restart
from podstatus.kube.scalars.time import Time
from podstatus.pods.apply_probe_results import Prober, ProbeResults
from podstatus.pods.container_attempts import attempts_newest_first
from podstatus.pods.container_status import (
    ContainerStatusContext,
    StartFailure,
    container_statuses,
    init_container_statuses,
)
from podstatus.pods.phase import get_phase
from podstatus.pods.pod_ips import with_host_ips, with_pod_ips
from podstatus.pods.resources_in_status import pod_resources
from podstatus.status.decide import generate_conditions as generate

_SECOND = 1_000_000_000
DEADLINE_EXCEEDED = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


def past_active_deadline(spec: PodSpec, start_time: Time | None, now: Time) -> bool:
    """Return whether the active deadline has passed; False if the pod has not started.

    Upstream: pkg/kubelet/active_deadline.go v1.36.4.
    """
    if spec.active_deadline_seconds is None or not start_time:
        return False
    return now - start_time >= spec.active_deadline_seconds * _SECOND


DEFAULT_GATES = FeatureGates()
NO_PROBES = ProbeResults()


def generate_api_pod_status(  # noqa: PLR0913 - independent facts by keyword, most optional
    pod: Pod,
    facts: PodFacts,
    *,
    now: Time,
    old_status: PodStatus | None = None,
    pod_is_terminal: bool = False,
    start_failures: Mapping[str, StartFailure] | None = None,
    prober: Prober = NO_PROBES,
    resize_conditions: Sequence[PodCondition] = (),
    host_ips: Sequence[str] = (),
    gates: FeatureGates = DEFAULT_GATES,
) -> PodStatus:
    """Return the current status of the pod.

    `old_status`: the manager's cached status; defaults to `pod.status`.
    `pod_is_terminal`: no container of the pod runs or will be started again.
    `start_failures`: by container name, the error of the latest start, if it failed.
    `prober` sets `started` and `ready`; the default has no probe results yet.
    `resize_conditions`: `pod_resize_conditions` of the manager.
    `host_ips`: the node's addresses, the preferred IP family first.

    Containers that are not in the spec are ignored. Raises TypeError, with the path of the field,
    if a value has the wrong type.
    """
    require_type(pod, Pod)
    old = pod.status if old_status is None else old_status
    facts = _checked_facts(facts, old, now=now, host_ips=host_ips)
    listed = first_by_name(facts.containers)
    context = ContainerStatusContext(
        pod=pod,
        facts=facts,
        attempts=attempts_newest_first(facts),
        listed=listed,
        past_init=_is_past_init(pod, listed),
        start_failures=_checked_start_failures(start_failures or {}),
        restarting_all=gates.restart_all_containers_on_container_exits
        and generate.should_all_containers_restart(pod, facts, old),
        gates=gates,
    )
    status = with_pod_ips(_convert_to_api_status(context, old), facts.ips, host_ips)
    status = _with_phase(status, context, old, now=now, pod_is_terminal=pod_is_terminal)
    status = prober.apply_to(pod, status, old)
    preserved = _preserved_conditions(pod, old, () if pod_is_terminal else resize_conditions, gates)
    status = structs.replace(
        status, conditions=(*preserved, *_kubelet_conditions(context, old, status, preserved))
    )
    return with_host_ips(status, host_ips, host_network=pod.spec.host_network)


def _checked_facts(
    facts: PodFacts, old: PodStatus, *, now: Time, host_ips: Sequence[str]
) -> PodFacts:
    """Return a frozen copy of the facts after checking all types."""
    require_type(facts, PodFacts)
    require_type(old, PodStatus)
    if not isinstance(now, Time):
        raise TypeError(
            f"now: expected a Time, got {type(now).__name__}; "
            "use Time.from_unix_nanos(time.time_ns()) for the current time"
        )
    if isinstance(host_ips, str):
        raise TypeError(f"host_ips: expected a list of addresses, got the string {host_ips[:40]!r}")
    for index, address in enumerate(host_ips):
        if not isinstance(address, str):
            raise TypeError(f"host_ips[{index}]: expected str, got {type(address).__name__}")
    return freeze(facts)


def _checked_start_failures(failures: Mapping[str, StartFailure]) -> Mapping[str, StartFailure]:
    for failure in failures.values():
        require_type(failure, StartFailure)
    return {name: freeze(failure) for name, failure in failures.items()}


def _convert_to_api_status(context: ContainerStatusContext, old: PodStatus) -> PodStatus:
    """Return the parts that follow from the runtime facts alone.

    Upstream: convertStatusToAPIStatus.
    """
    pod, spec = context.pod, context.pod.spec
    return PodStatus(
        qos_class=get_pod_qos(pod),
        container_statuses=container_statuses(context, spec.containers, old.container_statuses),
        init_container_statuses=init_container_statuses(
            context, spec.init_containers, old.init_container_statuses
        ),
        ephemeral_container_statuses=container_statuses(
            context, spec.ephemeral_containers, old.ephemeral_container_statuses
        ),
        resources=pod_resources(pod, context.facts, old),
        allocated_resources=pod_requests(spec),
    )


def _with_phase(
    status: PodStatus,
    context: ContainerStatusContext,
    old: PodStatus,
    *,
    now: Time,
    pod_is_terminal: bool,
) -> PodStatus:
    """Set phase, reason and message. A terminal phase never changes."""
    pod = context.pod
    phase = get_phase(
        pod,
        (*(status.container_statuses or ()), *(status.init_container_statuses or ())),
        pod_is_terminal=pod_is_terminal,
        pod_has_initialized=_has_active_container(context),
        gates=context.gates,
    )
    phase = next(filter(is_terminal_phase, (phase, old.phase, pod.status.phase)), phase)
    reason = message = ""
    if phase == old.phase:
        reason = old.reason or pod.status.reason
        message = old.message or pod.status.message
    if past_active_deadline(pod.spec, old.start_time, now):
        phase, reason, message = "Failed", DEADLINE_EXCEEDED, DEADLINE_MESSAGE
    if is_terminal_phase(pod.status.phase):
        phase = pod.status.phase
    return structs.replace(status, phase=phase, reason=reason, message=message)


def _is_past_init(pod: Pod, listed: Mapping[str, ContainerFacts]) -> bool:
    first = [listed.get(container.name) for container in pod.spec.containers or ()]
    return any(a is not None and a.state is not ContainerRunState.UNKNOWN for a in first)


def _has_active_container(context: ContainerStatusContext) -> bool:
    """Return whether a regular container was created in the current sandbox."""
    names = {container.name for container in context.pod.spec.containers or ()}
    return any(attempt.active and attempt.name in names for attempt in context.facts.containers)


def _preserved_conditions(
    pod: Pod, old: PodStatus, resize_conditions: Sequence[PodCondition], gates: FeatureGates
) -> tuple[PodCondition, ...]:
    """Return the conditions of other owners, resize conditions and DisruptionTarget."""
    foreign = [
        condition
        for condition in pod.status.conditions or ()
        if not pod_condition_by_kubelet(condition.type, gates)
    ]
    if not pod.metadata.generation:
        resize_conditions = [structs.replace(c, observed_generation=0) for c in resize_conditions]
    preserved = (*foreign, *resize_conditions)
    disruption = find_condition(old.conditions, DISRUPTION_TARGET)
    return (
        preserved if disruption is None else replace_or_append_pod_condition(preserved, disruption)
    )


def _kubelet_conditions(
    context: ContainerStatusContext,
    old: PodStatus,
    status: PodStatus,
    preserved: Sequence[PodCondition],
) -> list[PodCondition]:
    """Return the conditions that the node computes, in upstream's order."""
    pod, facts, gates, phase = context.pod, context.facts, context.gates, status.phase
    statuses = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    conditions = []
    if gates.pod_ready_to_start_containers_condition:
        conditions.append(
            generate.generate_pod_ready_to_start_containers_condition(pod, old, facts)
        )
    conditions.append(generate.generate_pod_initialized_condition(pod, old, statuses, phase, gates))
    conditions += [
        generate.generate_pod_ready_condition(pod, old, (*preserved, *conditions), statuses, phase),
        generate.generate_containers_ready_condition(pod, old, statuses, phase),
        _pod_scheduled_condition(pod, old),
    ]
    if gates.restart_all_containers_on_container_exits and all_containers_could_restart(pod.spec):
        conditions.append(
            generate.generate_all_containers_restarting_condition(pod, facts, old, phase)
        )
    return conditions


def _pod_scheduled_condition(pod: Pod, old: PodStatus) -> PodCondition:
    """PodScheduled is always true: a pod on a node has been scheduled."""
    generation = generate.condition_observed_generation(pod.metadata.generation, old)
    return PodCondition(type=POD_SCHEDULED, status="True", observed_generation=generation)
