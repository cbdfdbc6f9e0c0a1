"""Under which addresses the node is known."""

import ipaddress
import socket

from podstatus.kube.objects.node import NodeAddress
from podstatus.node.settings import NodeSettings

# Of documentation (RFC 5737, RFC 3849): nothing is ever sent there.
_UNROUTED_ADDRESSES = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
_LOOPBACK = "127.0.0.1"


def node_addresses(settings: NodeSettings) -> tuple[NodeAddress, ...]:
    """The addresses to show: those that were set, else the one that others see.

    Upstream: NodeAddress, nodestatus/setters.go v1.36.4; it also asks DNS for the node's name,
    which may take its time, and needs a network, which we do not.
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
    """Our address on the way out: connecting a datagram socket looks it up and sends nothing."""
    for family, far_away in _UNROUTED_ADDRESSES:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((far_away, 9))
                return str(probe.getsockname()[0])
        except OSError:
            continue
    return None
