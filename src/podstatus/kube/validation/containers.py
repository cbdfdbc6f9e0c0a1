"""Rules for the containers of a pod.

Upstream: validateContainers, validateInitContainers, validateContainerCommon,
pkg/apis/core/validation/validation.go v1.36.4. Of security contexts, users, groups and
privileges are looked at.
"""

from collections.abc import Iterable

import msgspec

from podstatus.kube.objects.containers import (
    Container,
    ContainerPort,
    ContainerRestartRule,
    SecurityContext,
)
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.volumes import Volume
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.validation.environment import validate_environment
from podstatus.kube.validation.field_errors import (
    FieldError,
    duplicate,
    in_range,
    invalid_value,
    invalid_values,
    one_of,
    required,
    too_many,
    unsupported,
)
from podstatus.kube.validation.names import dns_label, port_name
from podstatus.kube.validation.probes import forbid_probes_and_hooks, validate_probes_and_hooks
from podstatus.kube.validation.resources import validate_container_resources
from podstatus.kube.validation.volumes import validate_mounts

_ID_LIMIT = 2**31 - 1
_NO_POLICY = "must specify restartPolicy when restart rules are used"
_RULE_ACTIONS = ("Restart", "RestartAllContainers")
_RULE_OPERATORS = ("In", "NotIn")
_MAX_RULES = 20
_MAX_EXIT_CODES = 255


class PodContext(msgspec.Struct, frozen=True, kw_only=True):
    """What rules for a container need to know of its pod."""

    volumes: dict[str, Volume]
    claims: frozenset[str]
    restart_policy: str
    grace: int


def validate_containers(spec: PodSpec, context: PodContext) -> list[FieldError]:
    """What is wrong with the regular containers."""
    containers = spec.containers or ()
    if not containers:
        return [required("spec.containers")]
    found: list[FieldError] = []
    names: set[str] = set()
    for index, container in enumerate(containers):
        field = f"spec.containers[{index}]"
        found += _validate_container(field, container, context)
        if container.name in names:
            found.append(duplicate(f"{field}.name", container.name))
        names.add(container.name)
        found += validate_probes_and_hooks(field, container, context.grace)
        found += _validate_restarts(field, container)
    return found + _validate_host_ports("spec.containers", containers)


def validate_init_containers(spec: PodSpec, context: PodContext) -> list[FieldError]:
    """What is wrong with the init containers, sidecars among them."""
    found: list[FieldError] = []
    names = {container.name for container in spec.containers or ()}
    for index, container in enumerate(spec.init_containers or ()):
        field = f"spec.initContainers[{index}]"
        found += _validate_container(field, container, context)
        if container.restart_policy is not None:
            found += _validate_restarts(field, container)
        elif container.restart_policy_rules:
            found.append(required(f"{field}.restartPolicy", _NO_POLICY))
        if container.name in names:
            found.append(duplicate(f"{field}.name", container.name))
        if container.name:
            names.add(container.name)
        found += _validate_host_ports("spec.initContainers", [container])
        if is_restartable_init_container(container):
            found += validate_probes_and_hooks(field, container, context.grace)
        else:
            found += forbid_probes_and_hooks(field, container)
            found += _validate_init_resize(field, container)
    return found


def validate_image_spaces(field: str, containers: Iterable[Container]) -> list[FieldError]:
    """A pod, unlike a template for one, has no spaces around the name of an image."""
    why = "must not have leading or trailing whitespace"
    return [
        invalid_value(f"{field}[{index}].image", container.image, why)
        for index, container in enumerate(containers)
        if container.image != container.image.strip()
    ]


def _validate_container(field: str, container: Container, context: PodContext) -> list[FieldError]:
    found = [] if container.name else [required(f"{field}.name")]
    if container.name:
        found += invalid_values(f"{field}.name", container.name, dns_label(container.name))
    if not container.image:
        found.append(required(f"{field}.image"))
    found += one_of(
        f"{field}.terminationMessagePolicy",
        container.termination_message_policy,
        ("File", "FallbackToLogsOnError"),
    )
    found += _validate_ports(f"{field}.ports", container.ports or ())
    found += validate_environment(field, container)
    found += validate_mounts(field, container, context.volumes)
    policies = ("Always", "IfNotPresent", "Never")
    found += one_of(f"{field}.imagePullPolicy", container.image_pull_policy, policies)
    found += validate_container_resources(f"{field}.resources", container.resources, context.claims)
    found += _validate_resize_policy(f"{field}.resizePolicy", container, context.restart_policy)
    if container.security_context is not None:
        found += _validate_security(f"{field}.securityContext", container.security_context)
    return found


def _validate_ports(field: str, ports: tuple[ContainerPort, ...]) -> list[FieldError]:
    found: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        path = f"{field}[{index}]"
        wrong = port_name(port.name) if port.name else []
        found += invalid_values(f"{path}.name", port.name, wrong)
        if port.name in names:
            found.append(duplicate(f"{path}.name", port.name))
        if port.name and not wrong:
            names.add(port.name)
        if not port.container_port:
            found.append(required(f"{path}.containerPort"))
        else:
            found += in_range(f"{path}.containerPort", port.container_port, 1, 65535)
        if port.host_port:
            found += in_range(f"{path}.hostPort", port.host_port, 1, 65535)
        found += one_of(f"{path}.protocol", port.protocol, ("SCTP", "TCP", "UDP"))
    return found


def _validate_host_ports(field: str, containers: Iterable[Container]) -> list[FieldError]:
    found = []
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.ports or ()):
            if not port.host_port:
                continue
            told = f"{port.protocol}/{port.host_ip}/{port.host_port}"
            if told in taken:
                found.append(duplicate(f"{field}[{index}].ports[{number}].hostPort", told))
            taken.add(told)
    return found


def _validate_resize_policy(
    field: str, container: Container, restart_policy: str
) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, policy in enumerate(container.resize_policy or ()):
        if policy.resource_name in seen:
            found.append(duplicate(f"{field}[{index}]", policy.resource_name))
        seen.add(policy.resource_name)
        found += one_of(field, policy.resource_name, ("cpu", "memory"))
        found += one_of(field, policy.restart_policy, ("NotRequired", "RestartContainer"))
        if restart_policy == "Never" and policy.restart_policy != "NotRequired":
            why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            found.append(invalid_value(field, policy.restart_policy, why))
    return found


def _validate_init_resize(field: str, container: Container) -> list[FieldError]:
    why = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return [
        invalid_value(f"{field}.resizePolicy[{index}].restartPolicy", "RestartContainer", why)
        for index, policy in enumerate(container.resize_policy or ())
        if policy.restart_policy == "RestartContainer"
    ]


def _validate_restarts(field: str, container: Container) -> list[FieldError]:
    found = []
    rules = container.restart_policy_rules or ()
    policies = ("Always", "Never", "OnFailure")
    if container.restart_policy is None and rules:
        found.append(required(f"{field}.restartPolicy", _NO_POLICY))
    elif container.restart_policy is not None and container.restart_policy not in policies:
        found.append(unsupported(f"{field}.restartPolicy", container.restart_policy, policies))
    if len(rules) > _MAX_RULES:
        found.append(too_many(f"{field}.restartPolicyRules", len(rules), _MAX_RULES))
    for index, rule in enumerate(rules):
        found += _validate_restart_rule(f"{field}.restartPolicyRules[{index}]", rule)
    return found


def _validate_restart_rule(field: str, rule: ContainerRestartRule) -> list[FieldError]:
    found = []
    if rule.action not in _RULE_ACTIONS:
        found.append(unsupported(f"{field}.action", rule.action, _RULE_ACTIONS))
    if rule.exit_codes is None:
        return [*found, required(f"{field}.exitCodes", "must be specified")]
    operator, count = rule.exit_codes.operator, len(rule.exit_codes.values or ())
    if operator not in _RULE_OPERATORS:
        found.append(unsupported(f"{field}.exitCodes.operator", operator, _RULE_OPERATORS))
    if count > _MAX_EXIT_CODES:
        found.append(too_many(f"{field}.exitCodes.values", count, _MAX_EXIT_CODES))
    return found


def _validate_security(field: str, context: SecurityContext) -> list[FieldError]:
    found: list[FieldError] = []
    for name, number in (("runAsUser", context.run_as_user), ("runAsGroup", context.run_as_group)):
        if number is not None:
            found += in_range(f"{field}.{name}", number, 0, _ID_LIMIT)
    if context.allow_privilege_escalation is False:
        given = {"allowPrivilegeEscalation": False}
        if context.privileged:
            why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            found.append(invalid_value(field, given, why))
        if context.capabilities and "CAP_SYS_ADMIN" in (context.capabilities.add or ()):
            why = (
                "cannot set `allowPrivilegeEscalation` to false "
                "and `capabilities.Add` CAP_SYS_ADMIN"
            )
            found.append(invalid_value(field, given, why))
    return found
