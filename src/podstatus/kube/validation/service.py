"""Validation of Services.

Covers the fields that clients set by hand. Not checked: rules between `clusterIPs`, `ipFamilies`
and `ipFamilyPolicy`, load balancers and traffic policies.

Upstream: validateService, validateServicePort, pkg/apis/core/validation/validation.go v1.36.4.
"""

from podstatus.kube.objects.service import NO_CLUSTER_IP, ServicePort, ServiceSpec
from podstatus.kube.validation.addresses import validate_address
from podstatus.kube.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    in_range,
    invalid_value,
    invalid_values,
    one_of,
    required,
)
from podstatus.kube.validation.meta import validate_labels
from podstatus.kube.validation.names import dns_label, dns_subdomain, port_name

EXTERNAL_NAME = "ExternalName"
_TYPES = ("ClusterIP", EXTERNAL_NAME, "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MAX_PORT = 65535


def validate_service_spec(spec: ServiceSpec) -> list[FieldError]:
    """Return the field errors of a spec whose defaults are set."""
    headless = spec.cluster_ip == NO_CLUSTER_IP
    ports = spec.ports or ()
    errors = []
    if not ports and not headless and spec.type != EXTERNAL_NAME:
        errors.append(required("spec.ports"))
    errors += _validate_address(spec, headless=headless)
    names: set[str] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        errors += _validate_port(path, port, names, require_name=len(ports) > 1)
    errors += validate_labels("spec.selector", spec.selector)
    errors += one_of("spec.sessionAffinity", spec.session_affinity, ("ClientIP", "None"))
    errors += one_of("spec.type", spec.type, _TYPES)
    return errors + _validate_unique_ports(ports)


def validate_service_spec_update(new: ServiceSpec, old: ServiceSpec) -> list[FieldError]:
    """Return an error if the cluster IP changes; a change from or to ExternalName may do so."""
    before, after = (old.cluster_ips or ())[:1], (new.cluster_ips or ())[:1]
    if EXTERNAL_NAME in (new.type, old.type) or before in ((), after):
        return []
    why = "may not change once set" if after else "primary clusterIP can not be unset"
    return [invalid_value("spec.clusterIPs[0]", list(new.cluster_ips or ()), why)]


def _validate_address(spec: ServiceSpec, *, headless: bool) -> list[FieldError]:
    if spec.type == EXTERNAL_NAME:
        return _validate_external_name(spec)
    if headless and spec.type in ("NodePort", "LoadBalancer"):
        why = f"may not be set to 'None' for {spec.type} services"
        return [invalid_value("spec.clusterIPs[0]", NO_CLUSTER_IP, why)]
    errors = []
    for index, address in enumerate(() if headless else spec.cluster_ips or ()):
        errors += validate_address(f"spec.clusterIPs[{index}]", address)
    if spec.cluster_ip and (spec.cluster_ips or ())[:1] != (spec.cluster_ip,):
        why = "first value must match `clusterIP`"
        errors.append(invalid_value("spec.clusterIPs", list(spec.cluster_ips or ()), why))
    return errors


def _validate_external_name(spec: ServiceSpec) -> list[FieldError]:
    errors = []
    if spec.cluster_ips:
        errors.append(forbidden("spec.clusterIPs", "may not be set for ExternalName services"))
    name = spec.external_name.removesuffix(".")
    if not name:
        return [*errors, required("spec.externalName")]
    return errors + invalid_values("spec.externalName", name, dns_subdomain(name))


def _validate_port(
    path: str, port: ServicePort, names: set[str], *, require_name: bool
) -> list[FieldError]:
    """Return the errors of a port; its name is added to `names`."""
    errors = []
    if port.name:
        errors += invalid_values(f"{path}.name", port.name, dns_label(port.name))
        if port.name in names:
            errors.append(duplicate(f"{path}.name", port.name))
        names.add(port.name)
    elif require_name:
        errors.append(required(f"{path}.name"))
    errors += in_range(f"{path}.port", port.port, 1, _MAX_PORT)
    errors += one_of(f"{path}.protocol", port.protocol, _PROTOCOLS)
    if isinstance(port.target_port, int):
        return errors + in_range(f"{path}.targetPort", port.target_port, 1, _MAX_PORT)
    return errors + invalid_values(
        f"{path}.targetPort", port.target_port, port_name(port.target_port)
    )


def _validate_unique_ports(ports: tuple[ServicePort, ...]) -> list[FieldError]:
    seen: set[tuple[str, int]] = set()
    errors = []
    for index, port in enumerate(ports):
        key = (port.protocol, port.port)
        if key in seen:
            errors.append(duplicate(f"spec.ports[{index}]", _go_port(port)))
        seen.add(key)
    return errors


def _go_port(port: ServicePort) -> dict[str, object]:
    """Return protocol and port as Go prints the struct that has only these two."""
    return {
        "Name": "",
        "Protocol": port.protocol,
        "AppProtocol": None,
        "Port": port.port,
        "TargetPort": 0,
        "NodePort": 0,
    }
