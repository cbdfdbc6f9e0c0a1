"""Validation of the metadata and spec of a pod.

Upstream: ValidatePodCreate, ValidatePodSpec, pkg/apis/core/validation/validation.go v1.36.4.
Affinity, topology spread, Windows options and the pod's security context are not validated.
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
    errors = validate_pod(pod)
    if pod.spec.ephemeral_containers:
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if pod.spec.node_name and pod.spec.scheduling_gates:
        detail = "cannot be set until all schedulingGates have been cleared"
        errors.append(forbidden("spec.nodeName", detail))
    return errors


def validate_pod(pod: Pod) -> list[FieldError]:
    """Return the errors of a pod's metadata and spec, on create and update."""
    spec = pod.spec
    errors = validate_meta(pod.metadata, dns_subdomain, namespaced=True)
    errors += validate_annotations(pod)
    errors += _validate_spec(spec)
    errors += validate_image_spaces("spec.containers", spec.containers or ())
    errors += validate_image_spaces("spec.initContainers", spec.init_containers or ())
    return errors


def validate_annotations(pod: Pod) -> list[FieldError]:
    """Return the errors of annotations with a meaning; those of AppArmor are ignored."""
    annotations = pod.metadata.annotations or {}
    errors = []
    if CONFIG_MIRROR in annotations and not pod.spec.node_name:
        detail = "must set spec.nodeName if mirror pod annotation is set"
        field = f"metadata.annotations[{CONFIG_MIRROR}]"
        errors.append(invalid_value(field, annotations[CONFIG_MIRROR], detail))
    cost = annotations.get(_DELETION_COST, "0")
    if not _INTEGER.fullmatch(cost) or not -(2**31) <= int(cost) < 2**31:
        field = f"metadata.annotations[{_DELETION_COST}]"
        errors.append(invalid_value(field, cost, "must be a 32bit integer"))
    return errors


def _validate_spec(spec: PodSpec) -> list[FieldError]:
    volumes, errors = validate_volumes(spec.volumes or ())
    context = PodContext(
        volumes=volumes,
        claims=frozenset(claim.name for claim in spec.resource_claims or ()),
        restart_policy=spec.restart_policy,
        grace=spec.termination_grace_period_seconds or 0,
    )
    errors += _validate_claims(spec)
    errors += validate_containers(spec, context)
    errors += validate_init_containers(spec, context)
    if spec.resources is not None:
        errors += validate_pod_resources(spec, spec.resources)
    errors += _validate_host_network(spec)
    policies = ("Always", "OnFailure", "Never")
    errors += one_of("spec.restartPolicy", spec.restart_policy, policies)
    errors += one_of("spec.dnsPolicy", spec.dns_policy, _DNS_POLICIES)
    errors += validate_labels("spec.nodeSelector", spec.node_selector)
    errors += _validate_dns(spec)
    errors += _validate_gates(spec)
    return errors + _validate_names(spec) + _validate_rest(spec)


def _validate_claims(spec: PodSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(spec.resource_claims or ()):
        field = f"spec.resourceClaims[{index}]"
        if not claim.name:
            errors.append(required(f"{field}.name"))
        elif claim.name in seen:
            errors.append(duplicate(f"{field}.name", claim.name))
        else:
            errors += invalid_values(f"{field}.name", claim.name, dns_label(claim.name))
        seen.add(claim.name)
        named = claim.resource_claim_name is not None
        if named == (claim.resource_claim_template_name is not None):
            rule = "at most" if named else "must specify"
            detail = f"{rule} one of `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid_value(field, claim.name, detail))
    return errors


def _validate_host_network(spec: PodSpec) -> list[FieldError]:
    if not spec.host_network:
        return []
    detail = "must match `containerPort` when `hostNetwork` is true"
    return [
        invalid_value(f"spec.containers[{index}].ports[{number}].hostPort", port.host_port, detail)
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
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required("spec.dnsConfig.nameservers", detail)]
    return [] if config is None else _validate_dns_config("spec.dnsConfig", config)


def _validate_dns_config(field: str, config: PodDNSConfig) -> list[FieldError]:
    servers, searches = config.nameservers or (), config.searches or ()
    errors = []
    if len(servers) > _NAMESERVERS:
        detail = f"must not have more than {_NAMESERVERS} nameservers"
        errors.append(invalid_value(f"{field}.nameservers", servers, detail))
    for index, server in enumerate(servers):
        errors += validate_address(f"{field}.nameservers[{index}]", server)
    if len(searches) > _SEARCHES:
        detail = f"must not have more than {_SEARCHES} search paths"
        errors.append(invalid_value(f"{field}.searches", searches, detail))
    if len(" ".join(searches)) > _SEARCH_CHARACTERS:
        detail = (
            f"must not have more than {_SEARCH_CHARACTERS} characters "
            "(including spaces) in the search list"
        )
        errors.append(invalid_value(f"{field}.searches", searches, detail))
    for index, search in enumerate(searches):
        name = search.removesuffix(".")
        messages = [] if search == "." else relaxed_dns_subdomain(name)
        errors += invalid_values(f"{field}.searches[{index}]", name, messages)
    for index, option in enumerate(config.options or ()):
        if not option.name:
            errors.append(required(f"{field}.options[{index}]", "must not be empty"))
    return errors


def _validate_gates(spec: PodSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, gate in enumerate(spec.readiness_gates or ()):
        field = f"spec.readinessGates[{index}].conditionType"
        errors += invalid_values(field, gate.condition_type, qualified_name(gate.condition_type))
    seen: set[str] = set()
    for index, scheduling in enumerate(spec.scheduling_gates or ()):
        field = f"spec.schedulingGates[{index}]"
        errors += invalid_values(field, scheduling.name, qualified_name(scheduling.name))
        if scheduling.name in seen:
            errors.append(duplicate(field, scheduling.name))
        seen.add(scheduling.name)
    return errors


def _validate_names(spec: PodSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, value, rule in (
        ("serviceAccountName", spec.service_account_name, dns_subdomain),
        ("nodeName", spec.node_name, dns_subdomain),
        ("hostname", spec.hostname, dns_label),
        ("subdomain", spec.subdomain, dns_label),
        ("priorityClassName", spec.priority_class_name, dns_subdomain),
    ):
        if value:
            errors += invalid_values(f"spec.{name}", value, rule(value))
    if spec.runtime_class_name is not None:
        messages = dns_subdomain(spec.runtime_class_name)
        errors += invalid_values("spec.runtimeClassName", spec.runtime_class_name, messages)
    return errors


def _validate_rest(spec: PodSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.active_deadline_seconds is not None:
        field = "spec.activeDeadlineSeconds"
        errors += in_range(field, spec.active_deadline_seconds, 1, _DEADLINE_LIMIT)
    errors += validate_tolerations("spec.tolerations", spec.tolerations or ())
    for index, alias in enumerate(spec.host_aliases or ()):
        field = f"spec.hostAliases[{index}]"
        errors += validate_address(f"{field}.ip", alias.ip)
        for number, name in enumerate(alias.hostnames or ()):
            errors += invalid_values(f"{field}.hostnames[{number}]", name, dns_subdomain(name))
    if spec.preemption_policy is not None:
        policies = ("PreemptLowerPriority", "Never")
        errors += one_of("spec.preemptionPolicy", spec.preemption_policy, policies)
    if spec.os is not None and not spec.os.name:
        errors.append(required("spec.os.name"))
    elif spec.os is not None and spec.os.name not in ("linux", "windows"):
        errors.append(unsupported("spec.os", spec.os.name, ("linux", "windows")))
    return errors
