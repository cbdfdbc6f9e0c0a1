"""The addresses of a pod and of its node: one per IP family, the node's family first.

Upstream: sortPodIPs and generateAPIPodStatus, kubelet_pods.go v1.36.4.
"""

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from msgspec import structs

from podstatus.kube.objects.pod_status import HostIP, PodIP, PodStatus

_Address = IPv4Address | IPv6Address

# Runtimes may pad numbers with zeros, which Python's parser rejects: 010.001.002.003.
_PADDING = re.compile(r"\b0+(?=[0-9a-fA-F])")


def with_pod_ips(status: PodStatus, ips: Sequence[str], host_ips: Sequence[str]) -> PodStatus:
    """Return the status with the pod's addresses, as reported by the runtime."""
    pod_ips = sort_pod_ips(ips, host_ips)
    return structs.replace(
        status,
        pod_ip=pod_ips[0] if pod_ips else "",
        pod_ips=tuple(PodIP(ip=ip) for ip in pod_ips) or None,
    )


def with_host_ips(status: PodStatus, host_ips: Sequence[str], *, host_network: bool) -> PodStatus:
    """Return the status with the node's addresses, which host-network pods share."""
    nodes = [str(address) for address in _first_of_each_family(_parse_addresses(host_ips))]
    if not nodes:
        return status
    status = structs.replace(
        status, host_ip=nodes[0], host_ips=tuple(HostIP(ip=ip) for ip in nodes)
    )
    return _with_host_network_ips(status, nodes) if host_network else status


def sort_pod_ips(ips: Sequence[str], host_ips: Sequence[str]) -> list[str]:
    """Return the first address of the node's IP family, then the first of the other.

    The node's family is that of its first address, IPv4 if there is none.
    """
    addresses = _parse_addresses(ips)
    node = _parse_addresses(host_ips)
    first = node[0].version if node else 4
    addresses.sort(key=lambda address: address.version != first)
    return [str(address) for address in _first_of_each_family(addresses)]


def _with_host_network_ips(status: PodStatus, nodes: Sequence[str]) -> PodStatus:
    """Keep addresses that are set; add the second one when the node gets one."""
    ips = status.pod_ips or ()
    if not status.pod_ip:
        ips = (PodIP(ip=nodes[0]),)
    families = {ip_address(ips[0].ip).version, ip_address(nodes[-1]).version}
    if len(nodes) == 2 and len(ips) == 1 and len(families) == 2:
        ips = (*ips, PodIP(ip=nodes[1]))
    return structs.replace(status, pod_ip=ips[0].ip, pod_ips=ips)


def _first_of_each_family(addresses: Sequence[_Address]) -> list[_Address]:
    first_of: dict[int, _Address] = {}
    for address in addresses:
        first_of.setdefault(address.version, address)
    return list(first_of.values())


def _parse_addresses(texts: Sequence[str]) -> list[_Address]:
    """Parse the addresses; skip invalid ones."""
    return [address for text in texts if (address := _parse_address(text)) is not None]


def _parse_address(text: str) -> _Address | None:
    """Parse as Go's ParseIPSloppy does: no zones, and an IPv4-mapped address is IPv4."""
    if "%" in text:
        return None
    try:
        address = ip_address(_PADDING.sub("", text))
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
