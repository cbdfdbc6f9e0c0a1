"""The address of a node's kubelet.

Upstream: pkg/kubelet/client/kubelet_client.go and pkg/registry/core/node/strategy.go v1.36.4.
"""

import msgspec

from podstatus.apiserver.http import errors
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.unstructured import nested_list, nested_str, nested_value

_DEFAULT_PORT = 10250


class KubeletAddress(msgspec.Struct, frozen=True):
    """Host and port of a kubelet's HTTPS server."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def kubelet_address(node: Document, *, address: str = "") -> KubeletAddress:
    """Return the kubelet's address; `address` overrides the node's own host.

    Raises StatusError (500) if the node has no InternalIP.
    """
    port = nested_value(node, "status", "daemonEndpoints", "kubeletEndpoint", "Port")
    if not isinstance(port, int) or port <= 0:
        port = _DEFAULT_PORT
    return KubeletAddress(address or _internal_address(node), port)


def split_node_name(node_id: str) -> tuple[str, str]:
    """Split `name`, `name:port` or `https:name:port`. Raises StatusError (400)."""
    match node_id.split(":"):
        case [name] | ["", name, ""] | ["https", name, ""] if name:
            return name, ""
        case [name, port] | ["https", name, port] if name and port:
            return name, port
    raise errors.bad_request(f'invalid node request "{node_id}"')


def _internal_address(node: Document) -> str:
    addresses = nested_list(node, "status", "addresses")
    for address in addresses:
        if nested_str(address, "type") == "InternalIP":
            return nested_str(address, "address")
    listing = " ".join(f"{{{nested_str(a, 'type')} {nested_str(a, 'address')}}}" for a in addresses)
    raise StatusError(500, "", f"no preferred addresses found; known addresses: [{listing}]")
