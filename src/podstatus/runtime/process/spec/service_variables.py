"""The environment variables by which containers find Services.

Upstream: FromServices, pkg/kubelet/envvars/envvars.go, and getServiceEnvVarMap,
pkg/kubelet/kubelet_pods.go, v1.36.4. Two differences where upstream has no defined result: if two
Services give a variable the same name, the Service whose name sorts last wins (upstream iterates
over a map), and a Service without ports is skipped (upstream panics; no API server accepts one).
"""

from collections.abc import Iterable, Iterator

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.service import NO_CLUSTER_IP, Service, ServicePort

MASTER_NAMESPACE, MASTER_SERVICE = "default", "kubernetes"
"""The Service of the API server: its variables are set in all pods."""
_DEFAULT_PROTOCOL = "TCP"


def service_variables(pod: Pod, services: Iterable[Service]) -> dict[str, str]:
    """Return the variables of all Services that the pod sees."""
    visible = visible_services(pod, services)
    return dict(variable for service in visible for variable in variables_of(service))


def visible_services(pod: Pod, services: Iterable[Service]) -> list[Service]:
    """Return `default/kubernetes`, and with enableServiceLinks the Services of the pod's namespace.

    The latter is the default. A Service `kubernetes` of the pod's namespace replaces the one of
    `default`. Services without a cluster IP (headless, ExternalName) are not visible. Sorted by
    name.
    """
    visible: dict[str, Service] = {}
    for service in services:
        metadata = service.metadata
        if not _has_cluster_ip(service):
            continue
        if (metadata.namespace, metadata.name) == (MASTER_NAMESPACE, MASTER_SERVICE):
            visible.setdefault(metadata.name, service)
        elif metadata.namespace == pod.namespace and pod.spec.enable_service_links is not False:
            visible[metadata.name] = service
    return [visible[name] for name in sorted(visible)]


def variables_of(service: Service) -> Iterator[tuple[str, str]]:
    """Yield the variables of one Service: those of Kubernetes, then those of Docker links."""
    ports = service.spec.ports or ()
    if not _has_cluster_ip(service) or not ports:
        return
    prefix = _variable_name(service.metadata.name)
    yield f"{prefix}_SERVICE_HOST", service.spec.cluster_ip
    yield f"{prefix}_SERVICE_PORT", str(ports[0].port)
    for port in ports:
        if port.name:
            yield f"{prefix}_SERVICE_PORT_{_variable_name(port.name)}", str(port.port)
    yield f"{prefix}_PORT", _url(service, ports[0])
    for port in ports:
        yield from _link_variables(prefix, service, port)


def _link_variables(prefix: str, service: Service, port: ServicePort) -> Iterator[tuple[str, str]]:
    protocol = port.protocol or _DEFAULT_PROTOCOL
    name = f"{prefix}_PORT_{port.port}_{protocol.upper()}"
    yield name, _url(service, port)
    yield f"{name}_PROTO", protocol.lower()
    yield f"{name}_PORT", str(port.port)
    yield f"{name}_ADDR", service.spec.cluster_ip


def _url(service: Service, port: ServicePort) -> str:
    address = service.spec.cluster_ip
    host = f"[{address}]" if ":" in address else address
    return f"{(port.protocol or _DEFAULT_PROTOCOL).lower()}://{host}:{port.port}"


def _has_cluster_ip(service: Service) -> bool:
    return service.spec.cluster_ip not in ("", NO_CLUSTER_IP)


def _variable_name(name: str) -> str:
    return name.replace("-", "_").upper()
