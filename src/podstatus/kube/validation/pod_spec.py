"""Rules for a pod as its author describes it.

Upstream: ValidatePodCreate, ValidatePodSpec, pkg/apis/core/validation/validation.go v1.36.4.
Affinity, topology spread, Windows and the security context of the pod are taken as they are.
"""

import re

from podstatus.kube.objects.pod import CONFIG_MIRROR, Pod
from podstatus.kube.objects.pod_spec import PodDNSConfig, PodSpec
from podstatus.kube.validation.addresses import validate_address
from podstatus.kube.validation.containers import (
    PodContext,
    validate_containers,
    validate_image_spaces,
    validate_init_containers,
)
from podstatus.kube.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    in_range,
    invalid_value,
    invalid_values,
    one_of,
    required,
    unsupported,
)
from podstatus.kube.validation.meta import validate_labels, validate_meta
from podstatus.kube.validation.names import (
    dns_label,
    dns_subdomain,
    qualified_name,
    relaxed_dns_subdomain,
)
from podstatus.kube.validation.resources import validate_pod_resources
from podstatus.kube.validation.tolerations import validate_tolerations
from podstatus.kube.validation.volumes import validate_volumes

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_INTEGER = re.compile("0|-?[1-9][0-9]{0,9}")
_DEADLINE_LIMIT = 2**31 - 1
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_NAMESERVERS = 3
_SEARCHES = 32
_SEARCH_CHARACTERS = 2048


def validate_new_pod(pod: Pod) -> list[FieldError]:
    """What is wrong with a pod that is to be created."""
    found = validate_pod(pod)
    if pod.spec.ephemeral_containers:
        found.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if pod.spec.node_name and pod.spec.scheduling_gates:
        why = "cannot be set until all schedulingGates have been cleared"
        found.append(forbidden("spec.nodeName", why))
    return found


def validate_pod(pod: Pod) -> list[FieldError]:
    """What is wrong with a pod's metadata and spec at any time."""
    spec = pod.spec
    found = validate_meta(pod.metadata, dns_subdomain, namespaced=True)
    found += validate_annotations(pod)
    found += _validate_spec(spec)
    found += validate_image_spaces("spec.containers", spec.containers or ())
    found += validate_image_spaces("spec.initContainers", spec.init_containers or ())
    return found


def validate_annotations(pod: Pod) -> list[FieldError]:
    """What is wrong with annotations that mean something; those of AppArmor are not read."""
    annotations = pod.metadata.annotations or {}
    found = []
    if CONFIG_MIRROR in annotations and not pod.spec.node_name:
        why = "must set spec.nodeName if mirror pod annotation is set"
        field = f"metadata.annotations[{CONFIG_MIRROR}]"
        found.append(invalid_value(field, annotations[CONFIG_MIRROR], why))
    cost = annotations.get(_DELETION_COST, "0")
    if not _INTEGER.fullmatch(cost) or not -(2**31) <= int(cost) < 2**31:
        field = f"metadata.annotations[{_DELETION_COST}]"
        found.append(invalid_value(field, cost, "must be a 32bit integer"))
    return found


def _validate_spec(spec: PodSpec) -> list[FieldError]:
    volumes, found = validate_volumes(spec.volumes or ())
    around = PodContext(
        volumes=volumes,
        claims=frozenset(claim.name for claim in spec.resource_claims or ()),
        restart_policy=spec.restart_policy,
        grace=spec.termination_grace_period_seconds or 0,
    )
    found += _validate_claims(spec)
    found += validate_containers(spec, around)
    found += validate_init_containers(spec, around)
    if spec.resources is not None:
        found += validate_pod_resources(spec, spec.resources)
    found += _validate_host_network(spec)
    policies = ("Always", "OnFailure", "Never")
    found += one_of("spec.restartPolicy", spec.restart_policy, policies)
    found += one_of("spec.dnsPolicy", spec.dns_policy, _DNS_POLICIES)
    found += validate_labels("spec.nodeSelector", spec.node_selector)
    found += _validate_dns(spec)
    found += _validate_gates(spec)
    return found + _validate_names(spec) + _validate_rest(spec)


def _validate_claims(spec: PodSpec) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(spec.resource_claims or ()):
        field = f"spec.resourceClaims[{index}]"
        if not claim.name:
            found.append(required(f"{field}.name"))
        elif claim.name in seen:
            found.append(duplicate(f"{field}.name", claim.name))
        else:
            found += invalid_values(f"{field}.name", claim.name, dns_label(claim.name))
        seen.add(claim.name)
        named = claim.resource_claim_name is not None
        if named == (claim.resource_claim_template_name is not None):
            told = "at most" if named else "must specify"
            why = f"{told} one of `resourceClaimName`, `resourceClaimTemplateName`"
            found.append(invalid_value(field, claim.name, why))
    return found


def _validate_host_network(spec: PodSpec) -> list[FieldError]:
    if not spec.host_network:
        return []
    why = "must match `containerPort` when `hostNetwork` is true"
    return [
        invalid_value(f"spec.containers[{index}].ports[{number}].hostPort", port.host_port, why)
        for index, container in enumerate(spec.containers or ())
        for number, port in enumerate(container.ports or ())
        if port.host_port != port.container_port
    ]


def _validate_dns(spec: PodSpec) -> list[FieldError]:
    config = spec.dns_config
    if spec.dns_policy == "None":
        if config is None:
            return [required("spec.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.nameservers:
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required("spec.dnsConfig.nameservers", why)]
    return [] if config is None else _validate_dns_config("spec.dnsConfig", config)


def _validate_dns_config(field: str, config: PodDNSConfig) -> list[FieldError]:
    servers, searches = config.nameservers or (), config.searches or ()
    found = []
    if len(servers) > _NAMESERVERS:
        why = f"must not have more than {_NAMESERVERS} nameservers"
        found.append(invalid_value(f"{field}.nameservers", servers, why))
    for index, server in enumerate(servers):
        found += validate_address(f"{field}.nameservers[{index}]", server)
    if len(searches) > _SEARCHES:
        why = f"must not have more than {_SEARCHES} search paths"
        found.append(invalid_value(f"{field}.searches", searches, why))
    if len(" ".join(searches)) > _SEARCH_CHARACTERS:
        why = (
            f"must not have more than {_SEARCH_CHARACTERS} characters "
            "(including spaces) in the search list"
        )
        found.append(invalid_value(f"{field}.searches", searches, why))
    for index, search in enumerate(searches):
        name = search.removesuffix(".")
        wrong = [] if search == "." else relaxed_dns_subdomain(name)
        found += invalid_values(f"{field}.searches[{index}]", name, wrong)
    for index, option in enumerate(config.options or ()):
        if not option.name:
            found.append(required(f"{field}.options[{index}]", "must not be empty"))
    return found


def _validate_gates(spec: PodSpec) -> list[FieldError]:
    found: list[FieldError] = []
    for index, gate in enumerate(spec.readiness_gates or ()):
        field = f"spec.readinessGates[{index}].conditionType"
        found += invalid_values(field, gate.condition_type, qualified_name(gate.condition_type))
    seen: set[str] = set()
    for index, scheduling in enumerate(spec.scheduling_gates or ()):
        field = f"spec.schedulingGates[{index}]"
        found += invalid_values(field, scheduling.name, qualified_name(scheduling.name))
        if scheduling.name in seen:
            found.append(duplicate(field, scheduling.name))
        seen.add(scheduling.name)
    return found


def _validate_names(spec: PodSpec) -> list[FieldError]:
    found: list[FieldError] = []
    for name, value, rule in (
        ("serviceAccountName", spec.service_account_name, dns_subdomain),
        ("nodeName", spec.node_name, dns_subdomain),
        ("hostname", spec.hostname, dns_label),
        ("subdomain", spec.subdomain, dns_label),
        ("priorityClassName", spec.priority_class_name, dns_subdomain),
    ):
        if value:
            found += invalid_values(f"spec.{name}", value, rule(value))
    if spec.runtime_class_name is not None:
        wrong = dns_subdomain(spec.runtime_class_name)
        found += invalid_values("spec.runtimeClassName", spec.runtime_class_name, wrong)
    return found


def _validate_rest(spec: PodSpec) -> list[FieldError]:
    found: list[FieldError] = []
    if spec.active_deadline_seconds is not None:
        field = "spec.activeDeadlineSeconds"
        found += in_range(field, spec.active_deadline_seconds, 1, _DEADLINE_LIMIT)
    found += validate_tolerations("spec.tolerations", spec.tolerations or ())
    for index, alias in enumerate(spec.host_aliases or ()):
        field = f"spec.hostAliases[{index}]"
        found += validate_address(f"{field}.ip", alias.ip)
        for number, name in enumerate(alias.hostnames or ()):
            found += invalid_values(f"{field}.hostnames[{number}]", name, dns_subdomain(name))
    if spec.preemption_policy is not None:
        policies = ("PreemptLowerPriority", "Never")
        found += one_of("spec.preemptionPolicy", spec.preemption_policy, policies)
    if spec.os is not None and not spec.os.name:
        found.append(required("spec.os.name"))
    elif spec.os is not None and spec.os.name not in ("linux", "windows"):
        found.append(unsupported("spec.os", spec.os.name, ("linux", "windows")))
    return found
