"""Rules for a pod's status, which its node reports.

Upstream: ValidatePodStatusUpdate, pkg/apis/core/validation/validation.go v1.36.4.
"""

from collections.abc import Iterable

from podstatus.apiserver.claim_status_rules import validate_claim_statuses
from podstatus.apiserver.container_status_rules import (
    forbid_allocated,
    validate_allocated,
    validate_users,
)
from podstatus.apiserver.pod_update_rules import validate_annotation_update
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import ContainerStatus, PodCondition, PodStatus
from podstatus.kube.restart_policy import all_containers_could_restart, container_should_restart
from podstatus.kube.validation.addresses import validate_addresses
from podstatus.kube.validation.field_errors import (
    Cause,
    forbidden,
    invalid_value,
    invalid_values,
    unchanged,
)
from podstatus.kube.validation.meta import validate_meta_update
from podstatus.kube.validation.names import dns_subdomain, qualified_name
from podstatus.kube.validation.pod_spec import validate_annotations

_GATES = FeatureGates()
_KNOWN_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_NOT_NEGATIVE = "must be a non-negative integer"

_Statuses = tuple[ContainerStatus, ...]


def validate_pod_status_update(new: Pod, old: Pod) -> list[Cause]:
    """What is wrong with a change of a pod's status."""
    found = validate_meta_update(new.metadata, old.metadata)
    found += validate_annotation_update(new, old)
    found += validate_annotations(new)
    found += _validate_conditions(new.status.conditions or ())
    found += _validate_nomination(new, old)
    if new.status.observed_generation < 0:
        value = new.status.observed_generation
        found.append(invalid_value("status.observedGeneration", value, _NOT_NEGATIVE))
    found += unchanged("status.qosClass", new.status.qos_class, old.status.qos_class)
    found += _validate_transitions(new.status, old)
    found += validate_claim_statuses(new.status, new.spec)
    return found + _validate_addresses(new.status, old.status) + _validate_details(new)


def _validate_conditions(conditions: Iterable[PodCondition]) -> list[Cause]:
    found: list[Cause] = []
    for index, condition in enumerate(conditions):
        field = f"status.conditions[{index}]"
        if condition.observed_generation < 0:
            path = f"{field}.observedGeneration"
            found.append(invalid_value(path, condition.observed_generation, _NOT_NEGATIVE))
        if condition.type not in _KNOWN_CONDITIONS:
            wrong = qualified_name(condition.type)
            found += invalid_values(f"{field}.Type", condition.type, wrong)
    return found


def _validate_nomination(new: Pod, old: Pod) -> list[Cause]:
    field, name = "status.nominatedNodeName", new.status.nominated_node_name
    if not name or name == old.status.nominated_node_name:
        return []
    found = invalid_values(field, name, dns_subdomain(name))
    if old.spec.node_name:
        found.append(forbidden(field, "may not be set on pods that are already bound to a node"))
    return found


def _validate_transitions(new: PodStatus, old: Pod) -> list[Cause]:
    spec, before = old.spec, old.status
    found: list[Cause] = []
    if not all_containers_could_restart(spec):
        for kind, after, then, containers in (
            (
                "containerStatuses",
                new.container_statuses,
                before.container_statuses,
                spec.containers,
            ),
            (
                "initContainerStatuses",
                new.init_container_statuses,
                before.init_container_statuses,
                spec.init_containers,
            ),
        ):
            found += _no_illegal_restart(kind, after or (), then or (), containers or (), spec)
    return found + _no_illegal_restart(
        "ephemeralContainerStatuses",
        new.ephemeral_container_statuses or (),
        before.ephemeral_container_statuses or (),
        (),
        spec,
    )


def _no_illegal_restart(
    kind: str, new: _Statuses, old: _Statuses, containers: Iterable[Container], spec: PodSpec
) -> list[Cause]:
    """A container that ended does not run again, unless its pod says that it should."""
    running = {status.name for status in new if status.state.terminated is None}
    by_name = {container.name: container for container in reversed(tuple(containers))}
    found = []
    for index, status in enumerate(old):
        ended = status.state.terminated
        if ended is None or status.name not in running:
            continue
        container = by_name.get(status.name)
        if container is None or not container_should_restart(
            container, spec, ended.exit_code, _GATES
        ):
            why = "may not be transitioned to non-terminated state"
            found.append(forbidden(f"status.{kind}[{index}].state", why))
    return found


def _validate_addresses(new: PodStatus, old: PodStatus) -> list[Cause]:
    before = [address.ip for address in old.pod_ips or ()]
    given = [address.ip for address in new.pod_ips or ()]
    found = validate_addresses("status.podIPs", given, before)
    of_host = [address.ip for address in new.host_ips or ()]
    if not of_host:
        return found
    if of_host[0] != new.host_ip:
        why = "must be equal to `hostIP`"
        found.append(invalid_value("status.hostIPs[0].ip", of_host[0], why))
    before = [address.ip for address in old.host_ips or ()]
    return found + validate_addresses("status.hostIPs", of_host, before)


def _validate_details(pod: Pod) -> list[Cause]:
    status, spec = pod.status, pod.spec
    regular, init = status.container_statuses or (), status.init_container_statuses or ()
    ephemeral = status.ephemeral_container_statuses or ()
    system = spec.os.name if spec.os is not None else ""
    found = validate_users("status.containerStatuses", regular, system)
    found += validate_users("status.initContainerStatuses", init, system)
    found += validate_users("status.ephemeralContainerStatuses", ephemeral, system)
    found += validate_allocated("status.containerStatuses", regular, spec.containers or ())
    found += validate_allocated("status.initContainerStatuses", init, spec.init_containers or ())
    return found + forbid_allocated("status.ephemeralContainerStatuses", ephemeral)
