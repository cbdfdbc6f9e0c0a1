"""Host ports of pods, and conflicts between them.

Upstream: pkg/scheduler/framework/plugins/nodeports v1.36.4; HostPortInfo, kube-scheduler
v0.36.4, framework/types.go.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.restart_policy import is_restartable_init_container

_ANY_ADDRESS = "0.0.0.0"  # noqa: S104


class HostPort(NamedTuple):
    """A port on one address of the node, or on all (0.0.0.0)."""

    ip: str
    protocol: str
    port: int

    def conflicts_with(self, other: "HostPort") -> bool:
        """Whether both ports cannot be bound at the same time."""
        if (self.protocol, self.port) != (other.protocol, other.port):
            return False
        return self.ip == other.ip or _ANY_ADDRESS in (self.ip, other.ip)


def has_free_ports(spec: PodSpec, used: Collection[HostPort]) -> bool:
    """Whether none of the pod's host ports conflicts with a used one."""
    return not any(port.conflicts_with(other) for port in host_ports(spec) for other in used)


def host_ports(spec: PodSpec) -> Iterator[HostPort]:
    """Host ports of the regular containers and sidecars."""
    sidecars = (c for c in spec.init_containers or () if is_restartable_init_container(c))
    for container in (*sidecars, *(spec.containers or ())):
        for port in container.ports or ():
            if port.host_port > 0:
                protocol = port.protocol or "TCP"
                yield HostPort(port.host_ip or _ANY_ADDRESS, protocol, port.host_port)
