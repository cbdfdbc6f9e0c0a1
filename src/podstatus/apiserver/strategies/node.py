"""The strategy of nodes.

Upstream: pkg/registry/core/node/strategy.go, ValidateNode and ValidateNodeUpdate,
pkg/apis/core/validation/validation.go, plugin/pkg/admission/nodetaint, v1.36.4.
"""

import re

from podstatus.apiserver.controllers.decide.node_taints import NO_SCHEDULE, NOT_READY
from podstatus.apiserver.strategies.base import Document, Strategy, prepare_meta_update
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


class NodeStrategy(Strategy):
    """The strategy of nodes. A node has no generation and may be created with a status."""

    kind = Node
    namespaced = False

    def decode(self, document: Document) -> Document:
        """Return the node with defaults: allocatable is the capacity unless set."""
        node = super().decode(document)
        status, spec = node["status"], node["spec"]
        if "allocatable" not in status and status.get("capacity"):
            status["allocatable"] = dict(status["capacity"])
        _align_networks(spec)
        return node

    def prepare_create(self, document: Document) -> Document:
        """Return a new node with the not-ready taint; the node lifecycle controller removes it."""
        node = self.decode(document)
        spec = {key: value for key, value in node["spec"].items() if key != "configSource"}
        status = {key: value for key, value in node["status"].items() if key != "config"}
        taints = spec.get("taints") or []
        pairs = {(taint.get("key"), taint.get("effect")) for taint in taints}
        if (NOT_READY, NO_SCHEDULE) not in pairs:
            spec["taints"] = [*taints, {"key": NOT_READY, "effect": NO_SCHEDULE}]
        return node | {"spec": spec, "status": status}

    def validate_create(self, document: Document) -> list[FieldError]:
        return _validate_node(from_document(document, Node))

    def prepare_update(self, new: Document, old: Document, subresource: str) -> Document:
        """Return the node with its old spec (status update) or its old status."""
        node = prepare_meta_update(new, old)
        preserved, updated, obsolete = (
            ("spec", "status", "config")
            if subresource == "status"
            else ("status", "spec", "configSource")
        )
        # Dynamic kubelet configuration was removed: its fields are dropped unless the old object
        # has them.
        has_obsolete = obsolete in (old.get(updated) or {})
        part = {key: it for key, it in node[updated].items() if key != obsolete or has_obsolete}
        return node | {updated: part, preserved: old.get(preserved) or {}}

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[FieldError]:
        after, before = from_document(new, Node), from_document(old, Node)
        errors = [] if subresource == "status" else _validate_node(after)
        return list(dict.fromkeys(errors + _validate_update(after, before)))

    def fields(self, document: Document) -> dict[str, str]:
        unschedulable = (document.get("spec") or {}).get("unschedulable")
        return {"spec.unschedulable": "true" if unschedulable else "false"}


def _align_networks(spec: Document) -> None:
    """Make `podCIDR` the first of `podCIDRs`; if they differ, `podCIDR` wins."""
    network, networks = spec.get("podCIDR"), spec.get("podCIDRs") or []
    if network and (not networks or networks[0] != network):
        spec["podCIDRs"] = [network]
    elif networks:
        spec["podCIDR"] = networks[0]


def _validate_node(node: Node) -> list[FieldError]:
    errors = validate_meta(node.metadata, dns_subdomain, namespaced=False)
    errors += validate_taints("metadata.taints", node.spec.taints or ())
    errors += _validate_amounts(node)
    swap = node.status.node_info.swap
    if swap is not None and swap.capacity is not None and swap.capacity <= 0:
        field = "metadata.nodeSwapStatus.capacity"
        errors.append(invalid_value(field, swap.capacity, "must be greater than zero"))
    errors += _validate_features(node.status.declared_features or ())
    return errors + validate_networks("spec.podCIDRs", node.spec.pod_cidrs or ())


def _validate_amounts(node: Node) -> list[FieldError]:
    errors: list[FieldError] = []
    for side, amounts in (
        ("capacity", node.status.capacity),
        ("allocatable", node.status.allocatable),
    ):
        for name, quantity in (amounts or {}).items():
            errors += validate_quantity(f"status.{side}.{name}", name, quantity)
    return errors


def _validate_features(features: tuple[str, ...]) -> list[FieldError]:
    """Feature names must be valid, sorted and unique."""
    errors = []
    for index, name in enumerate(features):
        field = f"status.declaredFeatures[{index}]"
        if not _FEATURE.fullmatch(name):
            errors.append(
                invalid_value(
                    field, name, f"invalid feature name {go_quoted(name)}: {_FEATURE_RULE}"
                )
            )
        before = features[index - 1] if index else ""
        if index and name == before:
            errors.append(duplicate(field, name))
        elif name < before:
            errors.append(invalid_value(field, name, "list must be sorted alphabetically"))
    return errors


def _validate_update(new: Node, old: Node) -> list[FieldError]:
    errors = validate_meta_update(new.metadata, old.metadata)
    errors += _validate_amounts(new)
    errors += _validate_features(new.status.declared_features or ())
    addresses = new.status.addresses or ()
    errors += [
        duplicate(f"status.addresses[{index}]", {"Type": address.type, "Address": address.address})
        for index, address in enumerate(addresses)
        if address in addresses[:index]
    ]
    if old.spec.pod_cidrs and new.spec.pod_cidrs != old.spec.pod_cidrs:
        why = 'node updates may not change podCIDR except from "" to valid'
        errors.append(forbidden("spec.podCIDRs", why))
    if old.spec.provider_id and new.spec.provider_id != old.spec.provider_id:
        why = 'node updates may not change providerID except from "" to valid'
        errors.append(forbidden("spec.providerID", why))
    errors += validate_taints("metadata.taints", new.spec.taints or ())
    if new.spec.external_id != old.spec.external_id:
        errors.append(forbidden("spec.externalID", "may not be updated"))
    return errors
