"""What is particular about nodes.

Upstream: pkg/registry/core/node/strategy.go, ValidateNode and ValidateNodeUpdate,
pkg/apis/core/validation/validation.go, plugin/pkg/admission/nodetaint, v1.36.4.
"""

import re

from podstatus.apiserver.controllers.decide.node_taints import NO_SCHEDULE, NOT_READY
from podstatus.apiserver.strategies.base import Document, prepare_meta_update, roundtrip
from podstatus.apiserver.strategies.config import BaseStrategy
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.node import Node
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.validation.addresses import validate_networks
from podstatus.kube.validation.field_errors import FieldError, duplicate, forbidden, invalid_value
from podstatus.kube.validation.meta import validate_meta, validate_meta_update
from podstatus.kube.validation.names import dns_subdomain
from podstatus.kube.validation.resources import validate_quantity
from podstatus.kube.validation.tolerations import validate_taints

_FEATURE = re.compile("[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_FEATURE_RULE = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
    "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters "
    "and slashes"
)


class NodeStrategy(BaseStrategy):
    """The rules of nodes. A node has no generation, and may bring its status along."""

    kind = Node
    namespaced = False

    def decode(self, document: Document) -> Document:
        """The node as it is read; what is allocatable is its capacity unless it says else."""
        node = roundtrip(document, Node)
        status, spec = node["status"], node["spec"]
        if "allocatable" not in status and status.get("capacity"):
            status["allocatable"] = dict(status["capacity"])
        _align_networks(spec)
        return node

    def prepare_create(self, document: Document) -> Document:
        """A new node: tainted as not ready, until somebody sees that it is."""
        node = self.decode(document)
        spec = {key: value for key, value in node["spec"].items() if key != "configSource"}
        status = {key: value for key, value in node["status"].items() if key != "config"}
        taints = spec.get("taints") or []
        pairs = {(taint.get("key"), taint.get("effect")) for taint in taints}
        if (NOT_READY, NO_SCHEDULE) not in pairs:
            spec["taints"] = [*taints, {"key": NOT_READY, "effect": NO_SCHEDULE}]
        return node | {"spec": spec, "status": status}

    def validate_create(self, document: Document) -> list[FieldError]:
        """What is wrong with a new node."""
        return _validate_node(from_document(document, Node))

    def prepare_update(self, new: Document, old: Document, subresource: str) -> Document:
        """The node with its old spec or its old status."""
        node = prepare_meta_update(self.decode(new), old)
        kept, sent, dead = (
            ("spec", "status", "config")
            if subresource == "status"
            else ("status", "spec", "configSource")
        )
        # Dynamic configuration is a thing of the past: it stays where there is some.
        if dead not in (old.get(sent) or {}):
            node[sent].pop(dead, None)
        return node | {kept: old.get(kept) or {}}

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[FieldError]:
        """What is wrong with a changed node."""
        after, before = from_document(new, Node), from_document(old, Node)
        found = [] if subresource == "status" else _validate_node(after)
        return list(dict.fromkeys(found + _validate_update(after, before)))

    def fields(self, document: Document) -> dict[str, str]:
        """What nodes can be selected by."""
        unschedulable = (document.get("spec") or {}).get("unschedulable")
        return {"spec.unschedulable": "true" if unschedulable else "false"}


def _align_networks(spec: Document) -> None:
    """Make `podCIDR` the first of `podCIDRs`; the one counts more."""
    network, listed = spec.get("podCIDR"), spec.get("podCIDRs") or []
    if network and (not listed or listed[0] != network):
        spec["podCIDRs"] = [network]
    elif listed:
        spec["podCIDR"] = listed[0]


def _validate_node(node: Node) -> list[FieldError]:
    found = validate_meta(node.metadata, dns_subdomain, namespaced=False)
    found += validate_taints("metadata.taints", node.spec.taints or ())
    found += _validate_amounts(node)
    swap = node.status.node_info.swap
    if swap is not None and swap.capacity is not None and swap.capacity <= 0:
        field = "metadata.nodeSwapStatus.capacity"
        found.append(invalid_value(field, swap.capacity, "must be greater than zero"))
    found += _validate_features(node.status.declared_features or ())
    return found + validate_networks("spec.podCIDRs", node.spec.pod_cidrs or ())


def _validate_amounts(node: Node) -> list[FieldError]:
    found: list[FieldError] = []
    for side, amounts in (
        ("capacity", node.status.capacity),
        ("allocatable", node.status.allocatable),
    ):
        for name, quantity in (amounts or {}).items():
            found += validate_quantity(f"status.{side}.{name}", name, quantity)
    return found


def _validate_features(features: tuple[str, ...]) -> list[FieldError]:
    """Names of features come sorted, and once each."""
    found = []
    for index, name in enumerate(features):
        field = f"status.declaredFeatures[{index}]"
        if not _FEATURE.fullmatch(name):
            found.append(
                invalid_value(
                    field, name, f"invalid feature name {go_quoted(name)}: {_FEATURE_RULE}"
                )
            )
        before = features[index - 1] if index else ""
        if index and name == before:
            found.append(duplicate(field, name))
        elif name < before:
            found.append(invalid_value(field, name, "list must be sorted alphabetically"))
    return found


def _validate_update(new: Node, old: Node) -> list[FieldError]:
    found = validate_meta_update(new.metadata, old.metadata)
    found += _validate_amounts(new)
    found += _validate_features(new.status.declared_features or ())
    addresses = new.status.addresses or ()
    found += [
        duplicate(f"status.addresses[{index}]", {"Type": address.type, "Address": address.address})
        for index, address in enumerate(addresses)
        if address in addresses[:index]
    ]
    if old.spec.pod_cidrs and new.spec.pod_cidrs != old.spec.pod_cidrs:
        why = 'node updates may not change podCIDR except from "" to valid'
        found.append(forbidden("spec.podCIDRs", why))
    if old.spec.provider_id and new.spec.provider_id != old.spec.provider_id:
        why = 'node updates may not change providerID except from "" to valid'
        found.append(forbidden("spec.providerID", why))
    found += validate_taints("metadata.taints", new.spec.taints or ())
    if new.spec.external_id != old.spec.external_id:
        found.append(forbidden("spec.externalID", "may not be updated"))
    return found
