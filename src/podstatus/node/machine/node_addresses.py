"""Detect the addresses of the node."""

import ipaddress
import socket

from podstatus.kube.objects.node import NodeAddress
from podstatus.node.settings import NodeSettings

# Documentation addresses (RFC 5737, RFC 3849): never routed.
_UNROUTED_ADDRESSES = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
_LOOPBACK = "127.0.0.1"


def node_addresses(settings: NodeSettings) -> tuple[NodeAddress, ...]:
    """The addresses for the Node status: the configured IPs, or else the outbound IP.

    Upstream: NodeAddress, nodestatus/setters.go v1.36.4. Unlike upstream, the node name is not
    looked up in DNS, which may be slow and needs a network.
    """
    addresses = settings.node_ips or (_find_ip(settings.effective_hostname),)
    internal = tuple(NodeAddress(type="InternalIP", address=address) for address in addresses)
    return *internal, NodeAddress(type="Hostname", address=settings.effective_hostname)


def _find_ip(hostname: str) -> str:
    return _parse_ip(hostname) or _outbound_ip() or _LOOPBACK


def _parse_ip(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


def _outbound_ip() -> str | None:
    """The outbound address: connecting a UDP socket selects it without sending a packet."""
    for family, remote in _UNROUTED_ADDRESSES:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((remote, 9))
                return str(probe.getsockname()[0])
        except OSError:
            continue
    return None
