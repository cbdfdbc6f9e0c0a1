"""Where a node's agent is reached.

Upstream: pkg/kubelet/client/kubelet_client.go and pkg/registry/core/node/strategy.go v1.36.4.
"""

import msgspec

from podstatus.apiserver.http import errors
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.unstructured import nested_list, nested_str, nested_value

_DEFAULT_PORT = 10250


class KubeletAddress(msgspec.Struct, frozen=True):
    """A host and a port that speak TLS."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def kubelet_address(node: Document, *, address: str = "") -> KubeletAddress:
    """Where the agent of a node is; `address` stands in for its own. Raises Problem."""
    port = nested_value(node, "status", "daemonEndpoints", "kubeletEndpoint", "Port")
    if not isinstance(port, int) or port <= 0:
        port = _DEFAULT_PORT
    return KubeletAddress(address or _internal_address(node), port)


def split_node_name(node_id: str) -> tuple[str, str]:
    """Name and port of `name`, `name:port` and `https:name:port`. Raises Problem."""
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
    known = " ".join(f"{{{nested_str(a, 'type')} {nested_str(a, 'address')}}}" for a in addresses)
    raise StatusError(500, "", f"no preferred addresses found; known addresses: [{known}]")
