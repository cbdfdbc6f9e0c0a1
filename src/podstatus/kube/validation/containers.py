"""Validation of the containers of a pod.

Upstream: validateContainers, validateInitContainers, validateContainerCommon,
pkg/apis/core/validation/validation.go v1.36.4. Of security contexts, only users, groups and
privileges are validated.
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
    required_name,
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
    """The properties of a pod on which the validation of its containers depends."""

    volumes: dict[str, Volume]
    claims: frozenset[str]
    restart_policy: str
    grace: int


def validate_containers(spec: PodSpec, context: PodContext) -> list[FieldError]:
    containers = spec.containers or ()
    if not containers:
        return [required("spec.containers")]
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, container in enumerate(containers):
        field = f"spec.containers[{index}]"
        errors += _validate_container(field, container, context)
        if container.name in names:
            errors.append(duplicate(f"{field}.name", container.name))
        names.add(container.name)
        errors += validate_probes_and_hooks(field, container, context.grace)
        errors += _validate_restarts(field, container)
    return errors + _validate_host_ports("spec.containers", containers)


def validate_init_containers(spec: PodSpec, context: PodContext) -> list[FieldError]:
    """Return the errors of the init containers, including sidecars."""
    errors: list[FieldError] = []
    names = {container.name for container in spec.containers or ()}
    for index, container in enumerate(spec.init_containers or ()):
        field = f"spec.initContainers[{index}]"
        errors += _validate_container(field, container, context)
        if container.restart_policy is not None:
            errors += _validate_restarts(field, container)
        elif container.restart_policy_rules:
            errors.append(required(f"{field}.restartPolicy", _NO_POLICY))
        if container.name in names:
            errors.append(duplicate(f"{field}.name", container.name))
        if container.name:
            names.add(container.name)
        errors += _validate_host_ports("spec.initContainers", [container])
        if is_restartable_init_container(container):
            errors += validate_probes_and_hooks(field, container, context.grace)
        else:
            errors += forbid_probes_and_hooks(field, container)
            errors += _validate_init_resize(field, container)
    return errors


def validate_image_spaces(field: str, containers: Iterable[Container]) -> list[FieldError]:
    """Return an error for each image with surrounding spaces, which only pod templates may have."""
    detail = "must not have leading or trailing whitespace"
    return [
        invalid_value(f"{field}[{index}].image", container.image, detail)
        for index, container in enumerate(containers)
        if container.image != container.image.strip()
    ]


def _validate_container(field: str, container: Container, context: PodContext) -> list[FieldError]:
    errors = required_name(f"{field}.name", container.name, dns_label)
    if not container.image:
        errors.append(required(f"{field}.image"))
    errors += one_of(
        f"{field}.terminationMessagePolicy",
        container.termination_message_policy,
        ("File", "FallbackToLogsOnError"),
    )
    errors += _validate_ports(f"{field}.ports", container.ports or ())
    errors += validate_environment(field, container)
    errors += validate_mounts(field, container, context.volumes)
    policies = ("Always", "IfNotPresent", "Never")
    errors += one_of(f"{field}.imagePullPolicy", container.image_pull_policy, policies)
    errors += validate_container_resources(
        f"{field}.resources", container.resources, context.claims
    )
    errors += _validate_resize_policy(f"{field}.resizePolicy", container, context.restart_policy)
    if container.security_context is not None:
        errors += _validate_security(f"{field}.securityContext", container.security_context)
    return errors


def _validate_ports(field: str, ports: tuple[ContainerPort, ...]) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        path = f"{field}[{index}]"
        messages = port_name(port.name) if port.name else []
        errors += invalid_values(f"{path}.name", port.name, messages)
        if port.name in names:
            errors.append(duplicate(f"{path}.name", port.name))
        if port.name and not messages:
            names.add(port.name)
        if not port.container_port:
            errors.append(required(f"{path}.containerPort"))
        else:
            errors += in_range(f"{path}.containerPort", port.container_port, 1, 65535)
        if port.host_port:
            errors += in_range(f"{path}.hostPort", port.host_port, 1, 65535)
        errors += one_of(f"{path}.protocol", port.protocol, ("SCTP", "TCP", "UDP"))
    return errors


def _validate_host_ports(field: str, containers: Iterable[Container]) -> list[FieldError]:
    errors = []
    used: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.ports or ()):
            if not port.host_port:
                continue
            endpoint = f"{port.protocol}/{port.host_ip}/{port.host_port}"
            if endpoint in used:
                errors.append(duplicate(f"{field}[{index}].ports[{number}].hostPort", endpoint))
            used.add(endpoint)
    return errors


def _validate_resize_policy(
    field: str, container: Container, restart_policy: str
) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, policy in enumerate(container.resize_policy or ()):
        if policy.resource_name in seen:
            errors.append(duplicate(f"{field}[{index}]", policy.resource_name))
        seen.add(policy.resource_name)
        errors += one_of(field, policy.resource_name, ("cpu", "memory"))
        errors += one_of(field, policy.restart_policy, ("NotRequired", "RestartContainer"))
        if restart_policy == "Never" and policy.restart_policy != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(invalid_value(field, policy.restart_policy, detail))
    return errors


def _validate_init_resize(field: str, container: Container) -> list[FieldError]:
    detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return [
        invalid_value(f"{field}.resizePolicy[{index}].restartPolicy", "RestartContainer", detail)
        for index, policy in enumerate(container.resize_policy or ())
        if policy.restart_policy == "RestartContainer"
    ]


def _validate_restarts(field: str, container: Container) -> list[FieldError]:
    errors = []
    rules = container.restart_policy_rules or ()
    policies = ("Always", "Never", "OnFailure")
    if container.restart_policy is None and rules:
        errors.append(required(f"{field}.restartPolicy", _NO_POLICY))
    elif container.restart_policy is not None and container.restart_policy not in policies:
        errors.append(unsupported(f"{field}.restartPolicy", container.restart_policy, policies))
    if len(rules) > _MAX_RULES:
        errors.append(too_many(f"{field}.restartPolicyRules", len(rules), _MAX_RULES))
    for index, rule in enumerate(rules):
        errors += _validate_restart_rule(f"{field}.restartPolicyRules[{index}]", rule)
    return errors


def _validate_restart_rule(field: str, rule: ContainerRestartRule) -> list[FieldError]:
    errors = []
    if rule.action not in _RULE_ACTIONS:
        errors.append(unsupported(f"{field}.action", rule.action, _RULE_ACTIONS))
    if rule.exit_codes is None:
        return [*errors, required(f"{field}.exitCodes", "must be specified")]
    operator, count = rule.exit_codes.operator, len(rule.exit_codes.values or ())
    if operator not in _RULE_OPERATORS:
        errors.append(unsupported(f"{field}.exitCodes.operator", operator, _RULE_OPERATORS))
    if count > _MAX_EXIT_CODES:
        errors.append(too_many(f"{field}.exitCodes.values", count, _MAX_EXIT_CODES))
    return errors


def _validate_security(field: str, context: SecurityContext) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, number in (("runAsUser", context.run_as_user), ("runAsGroup", context.run_as_group)):
        if number is not None:
            errors += in_range(f"{field}.{name}", number, 0, _ID_LIMIT)
    if context.allow_privilege_escalation is False:
        value = {"allowPrivilegeEscalation": False}
        if context.privileged:
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid_value(field, value, detail))
        if context.capabilities and "CAP_SYS_ADMIN" in (context.capabilities.add or ()):
            detail = (
                "cannot set `allowPrivilegeEscalation` to false "
                "and `capabilities.Add` CAP_SYS_ADMIN"
            )
            errors.append(invalid_value(field, value, detail))
    return errors
