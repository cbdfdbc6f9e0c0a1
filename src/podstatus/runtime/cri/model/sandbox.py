"""The configuration of a pod's sandbox.

Upstream: generatePodSandboxConfig, kuberuntime/kuberuntime_sandbox.go v1.36.4. There are no cgroups
of pods yet: containers have their limits, and the runtime's cgroup parent.
"""

from collections.abc import Iterator

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSecurityContext
from podstatus.runtime.cri.api.codec import enum_number
from podstatus.runtime.cri.api.sandboxes import (
    CriDNSConfig,
    CriLinuxPodSandboxConfig,
    CriPodSandboxConfig,
    CriPodSandboxMetadata,
    CriPortMapping,
)
from podstatus.runtime.cri.model.dns import pod_dns
from podstatus.runtime.cri.model.labels import pod_labels
from podstatus.runtime.cri.model.security import sandbox_security

_MAX_HOSTNAME_LENGTH = 63


def sandbox_config(
    pod: Pod, *, attempt: int, log_directory: str, host_dns: CriDNSConfig
) -> CriPodSandboxConfig:
    """Return what RunPodSandbox needs; also part of each container's creation."""
    of_pod = pod.spec.security_context or PodSecurityContext()
    return CriPodSandboxConfig(
        metadata=CriPodSandboxMetadata(
            name=pod.name, uid=pod.uid, namespace=pod.namespace, attempt=attempt
        ),
        hostname=pod_hostname(pod),
        log_directory=log_directory,
        dns_config=pod_dns(pod, host_dns),
        port_mappings=tuple(_all_port_mappings(pod)),
        labels=pod_labels(pod),
        annotations=pod.metadata.annotations or {},
        linux=CriLinuxPodSandboxConfig(
            security_context=sandbox_security(pod),
            sysctls={sysctl.name: sysctl.value for sysctl in of_pod.sysctls or ()},
        ),
    )


def pod_hostname(pod: Pod) -> str:
    """Return the hostname of a pod; empty for one on the host's network.

    Upstream: GeneratePodHostNameAndDomain, kubelet_pods.go v1.36.4.
    """
    if pod.spec.host_network:
        return ""
    name = pod.spec.hostname_override or pod.spec.hostname or pod.name
    return name[:_MAX_HOSTNAME_LENGTH].rstrip("-.")


def _all_port_mappings(pod: Pod) -> Iterator[CriPortMapping]:
    for container in pod.spec.containers or ():
        yield from _port_mappings(container)


def _port_mappings(container: Container) -> Iterator[CriPortMapping]:
    """Yield the ports of a container; of ports with the same name only the first.

    Upstream: MakePortMappings, pkg/kubelet/container/helpers.go v1.36.4.
    """
    names = set()
    for port in container.ports or ():
        protocol = port.protocol or "TCP"
        name = port.name or (protocol, port.host_ip, port.container_port, port.host_port)
        if name in names:
            continue
        names.add(name)
        yield CriPortMapping(
            protocol=enum_number("Protocol", protocol),
            container_port=port.container_port,
            host_port=port.host_port,
            host_ip=port.host_ip,
        )
