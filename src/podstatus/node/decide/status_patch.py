"""What to send of a Node that has changed.

Upstream: PatchNodeStatus, component-helpers v0.36.4, node/util/status.go; nodeStatusHasChanged,
kubelet_node_status.go v1.36.4.
"""

from typing import Any

from msgspec import structs

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.node import Node, NodeCondition, NodeStatus
from podstatus.kube.patch import NODE, create_two_way_patch, encode_document
from podstatus.kube.scalars.time import UNSET_TIME


def has_changed(old: Node, new: Node) -> bool:
    """Whether something is new about a node, apart from when it was heard of."""
    return _without_heartbeats(old.status) != _without_heartbeats(new.status) or (
        (old.metadata.labels or {}) != (new.metadata.labels or {})
    )


def status_patch(old: Node, new: Node) -> bytes:
    """The strategic merge patch for `/status` that makes the new node of the old one.

    It names the UID: if the Node is another one by now, the server refuses it. (Upstream does
    not. Parts of conditions would then be merged into conditions that are not there.)
    """
    same = structs.replace(new.status, addresses=old.status.addresses)
    sent = structs.replace(new, spec=old.spec, status=same)
    patch = create_two_way_patch(to_document(old), to_document(sent), NODE)
    if (old.status.addresses or ()) != (new.status.addresses or ()):
        # They would be merged by their type, of which there may be two.
        listed: list[Any] = [to_document(address) for address in new.status.addresses or ()]
        listed.append({"$patch": "replace"})
        patch = patch | {"status": _nested(patch, "status") | {"addresses": listed}}
    if old.metadata.uid:
        patch = patch | {"metadata": _nested(patch, "metadata") | {"uid": old.metadata.uid}}
    return encode_document(patch)


def _nested(patch: dict[str, Any], key: str) -> dict[str, Any]:
    below: dict[str, Any] = patch.get(key) or {}
    return below


def _without_heartbeats(status: NodeStatus) -> dict[str, Any]:
    conditions = sorted(status.conditions or (), key=_condition_type)
    quiet = (structs.replace(it, last_heartbeat_time=UNSET_TIME) for it in conditions)
    return to_document(structs.replace(status, conditions=tuple(quiet)))


def _condition_type(condition: NodeCondition) -> str:
    return condition.type
