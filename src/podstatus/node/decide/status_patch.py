"""The patch for a changed Node.

Upstream: PatchNodeStatus, component-helpers v0.36.4, node/util/status.go; nodeStatusHasChanged,
kubelet_node_status.go v1.36.4.
"""

from typing import Any

from msgspec import structs

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.node import Node, NodeStatus
from podstatus.kube.patch import NODE, create_two_way_patch, encode_document
from podstatus.kube.scalars.time import UNSET_TIME


def has_changed(old: Node, new: Node) -> bool:
    """Whether status or labels differ, ignoring heartbeat times."""
    return _without_heartbeats(old.status) != _without_heartbeats(new.status) or (
        (old.metadata.labels or {}) != (new.metadata.labels or {})
    )


def status_patch(old: Node, new: Node) -> bytes:
    """The strategic merge patch for `/status` from the old to the new Node.

    It contains the UID, so that the server rejects it if the Node was re-created. (Upstream omits
    it: partial conditions would then be merged into a Node that does not have them.)
    """
    status = structs.replace(new.status, addresses=old.status.addresses)
    target = structs.replace(new, spec=old.spec, status=status)
    patch = create_two_way_patch(to_document(old), to_document(target), NODE)
    if (old.status.addresses or ()) != (new.status.addresses or ()):
        # Replace the list: a merge by type would lose one of two addresses of the same type.
        addresses: list[Any] = [to_document(address) for address in new.status.addresses or ()]
        addresses.append({"$patch": "replace"})
        patch = patch | {"status": _nested(patch, "status") | {"addresses": addresses}}
    if old.metadata.uid:
        patch = patch | {"metadata": _nested(patch, "metadata") | {"uid": old.metadata.uid}}
    return encode_document(patch)


def _nested(patch: dict[str, Any], key: str) -> dict[str, Any]:
    below: dict[str, Any] = patch.get(key) or {}
    return below


def _without_heartbeats(status: NodeStatus) -> dict[str, Any]:
    conditions = sorted(status.conditions or (), key=lambda condition: condition.type)
    without_heartbeats = (structs.replace(it, last_heartbeat_time=UNSET_TIME) for it in conditions)
    return to_document(structs.replace(status, conditions=tuple(without_heartbeats)))
