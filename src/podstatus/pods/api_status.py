"""The whole status of a pod, from what its runtime reports and what was shown before.

This is what a node gives to the status manager, again and again:

    facts = PodFacts(ips=("10.1.2.3",), containers=(...))
    status = generate_api_pod_status(
        pod, facts, now=now, old_status=manager.pod_status(pod.uid), host_ips=("192.168.7.1",)
    )
    manager.set_pod_status(pod, status)

`pod` holds what the node has admitted and allocated, and in its status what the API server
shows. The manager adds what is its own: times of transitions, start time, observed generation.

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
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.kube.pod_resources import pod_requests
from podstatus.kube.qos import get_pod_qos
from podstatus.kube.restart_policy import all_containers_could_restart
from podstatus.kube.scalars.time import Time
from podstatus.pods.container_resources import pod_resources
from podstatus.pods.container_state import attempts_newest_first
from podstatus.pods.container_status import (
    ContainerStatusContext,
    StartFailure,
    container_statuses,
    init_container_statuses,
)
from podstatus.pods.phase import (
    DEADLINE_EXCEEDED,
    DEADLINE_MESSAGE,
    get_phase,
    past_active_deadline,
)
from podstatus.pods.pod_ips import with_host_ips, with_pod_ips
from podstatus.pods.probe_results import Prober, ProbeResults
from podstatus.status.decide import generate

DEFAULT_GATES = FeatureGates()
NO_PROBES = ProbeResults()


def generate_api_pod_status(
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
    """The status of the pod as it is now.

    `old_status` is what the manager has cached; the pod's own status if it has nothing.
    `pod_is_terminal`: nothing of the pod runs or will be started again.
    `start_failures`: by container name, what came of the latest try, if it failed.
    `prober` says what has started and is ready; the default has heard of no probe's verdict yet.
    `resize_conditions`: from the manager, `pod_resize_conditions`.
    `host_ips`: the node's addresses, those of the family that pods prefer first.

    Containers that the spec does not have are passed over. Raises TypeError for what is of a
    wrong type, and names the fact.
    """
    require_type(pod, Pod)
    old = pod.status if old_status is None else old_status
    facts = _checked_facts(facts, old, now=now, host_ips=host_ips)
    listed = first_by_name(facts.containers)
    view = ContainerStatusContext(
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
    status = with_pod_ips(_convert_to_api_status(view, old), facts.ips, host_ips)
    status = _with_phase(status, view, old, now=now, pod_is_terminal=pod_is_terminal)
    status = prober.apply_to(pod, status, old)
    kept = _preserved_conditions(pod, old, () if pod_is_terminal else resize_conditions, gates)
    status = structs.replace(
        status, conditions=(*kept, *_kubelet_conditions(view, old, status, kept))
    )
    return with_host_ips(status, host_ips, host_network=pod.spec.host_network)


def _checked_facts(
    facts: PodFacts, old: PodStatus, *, now: Time, host_ips: Sequence[str]
) -> PodFacts:
    """The facts, if everything is of the right type."""
    require_type(facts, PodFacts)
    require_type(old, PodStatus)
    if not isinstance(now, Time):
        raise TypeError(
            f"now: expected a Time, got {type(now).__name__}; "
            "Time.from_unix_nanos(time.time_ns()) is the time now"
        )
    if isinstance(host_ips, str):
        raise TypeError(
            f"host_ips: expected a list, got the text {host_ips[:40]!r}; put it into one"
        )
    for index, address in enumerate(host_ips):
        if not isinstance(address, str):
            raise TypeError(f"host_ips[{index}]: expected str, got {type(address).__name__}")
    return freeze(facts)


def _checked_start_failures(failures: Mapping[str, StartFailure]) -> Mapping[str, StartFailure]:
    for failure in failures.values():
        require_type(failure, StartFailure)
    return {name: freeze(failure) for name, failure in failures.items()}


def _convert_to_api_status(view: ContainerStatusContext, old: PodStatus) -> PodStatus:
    """What follows from the runtime's facts, container by container.

    Upstream: convertStatusToAPIStatus.
    """
    pod, spec = view.pod, view.pod.spec
    return PodStatus(
        qos_class=get_pod_qos(pod),
        container_statuses=container_statuses(view, spec.containers, old.container_statuses),
        init_container_statuses=init_container_statuses(
            view, spec.init_containers, old.init_container_statuses
        ),
        ephemeral_container_statuses=container_statuses(
            view, spec.ephemeral_containers, old.ephemeral_container_statuses
        ),
        resources=pod_resources(pod, view.facts, old),
        allocated_resources=pod_requests(spec),
    )


def _with_phase(
    status: PodStatus,
    view: ContainerStatusContext,
    old: PodStatus,
    *,
    now: Time,
    pod_is_terminal: bool,
) -> PodStatus:
    """The status with phase, reason and message: what has ended for good stays so."""
    pod = view.pod
    phase = get_phase(
        pod,
        (*(status.container_statuses or ()), *(status.init_container_statuses or ())),
        pod_is_terminal=pod_is_terminal,
        pod_has_initialized=_has_active_container(view),
        gates=view.gates,
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


def _has_active_container(view: ContainerStatusContext) -> bool:
    """Whether a regular container was made in the sandbox now in use."""
    names = {container.name for container in view.pod.spec.containers or ()}
    return any(attempt.active and attempt.name in names for attempt in view.facts.containers)


def _preserved_conditions(
    pod: Pod, old: PodStatus, resize_conditions: Sequence[PodCondition], gates: FeatureGates
) -> tuple[PodCondition, ...]:
    """The conditions that are not decided here: others', and those of events gone by."""
    foreign = [
        condition
        for condition in pod.status.conditions or ()
        if not pod_condition_by_kubelet(condition.type, gates)
    ]
    if not pod.metadata.generation:
        resize_conditions = [structs.replace(c, observed_generation=0) for c in resize_conditions]
    kept = (*foreign, *resize_conditions)
    disruption = find_condition(old.conditions, DISRUPTION_TARGET)
    return kept if disruption is None else replace_or_append_pod_condition(kept, disruption)


def _kubelet_conditions(
    view: ContainerStatusContext,
    old: PodStatus,
    status: PodStatus,
    preserved: Sequence[PodCondition],
) -> list[PodCondition]:
    """The conditions that the node decides, in upstream's order."""
    pod, facts, gates, phase = view.pod, view.facts, view.gates, status.phase
    statuses = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    decided = []
    if gates.pod_ready_to_start_containers_condition:
        decided.append(generate.generate_pod_ready_to_start_containers_condition(pod, old, facts))
    decided.append(generate.generate_pod_initialized_condition(pod, old, statuses, phase, gates))
    decided += [
        generate.generate_pod_ready_condition(pod, old, (*preserved, *decided), statuses, phase),
        generate.generate_containers_ready_condition(pod, old, statuses, phase),
        _pod_scheduled_condition(pod, old),
    ]
    if gates.restart_all_containers_on_container_exits and all_containers_could_restart(pod.spec):
        decided.append(
            generate.generate_all_containers_restarting_condition(pod, facts, old, phase)
        )
    return decided


def _pod_scheduled_condition(pod: Pod, old: PodStatus) -> PodCondition:
    """PodScheduled: whatever a node has, it was given."""
    generation = generate.condition_observed_generation(pod.metadata.generation, old)
    return PodCondition(type=POD_SCHEDULED, status="True", observed_generation=generation)
