"""Whether a pod may run on a node: node selector, required node affinity and taints.

Upstream: GetRequiredNodeAffinity, component-helpers v0.36.4,
scheduling/corev1/nodeaffinity/nodeaffinity.go; ToleratesTaint, k8s.io/api v0.36.4,
core/v1/toleration.go, with the comparison operators off, as they are by default.
"""

import re
from collections.abc import Iterable, Mapping

from podstatus.kube.objects.node import Node, Taint
from podstatus.kube.objects.pod_spec import (
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodSpec,
    Toleration,
)

_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
_INT64 = range(-(2**63), 2**63)


def matches_node(spec: PodSpec, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node of this name and with these labels is one that the pod asks for."""
    if not (spec.node_selector or {}).items() <= labels.items():
        return False
    affinity = spec.affinity and spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    if not required:
        return True
    return any(_matches_term(term, name, labels) for term in required.node_selector_terms or ())


def _matches_term(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    """All requirements of a term have to hold; a term without any selects nothing."""
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    return (
        bool(expressions or fields)
        and all(_matches_requirement(requirement, labels) for requirement in expressions)
        and all(_matches_field(requirement, name) for requirement in fields)
    )


def _matches_requirement(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """An operator that nobody knows, or with the wrong number of values, holds of no node."""
    value, values = labels.get(requirement.key), requirement.values or ()
    match requirement.operator:
        case "In":
            return value in values
        case "NotIn":
            return bool(values) and value not in values
        case "Exists":
            return not values and value is not None
        case "DoesNotExist":
            return not values and value is None
        case "Gt" | "Lt" if value is not None and len(values) == 1:
            return _compare_integers(requirement.operator, value, values[0])
    return False


def _compare_integers(operator: str, value: str, bound: str) -> bool:
    mine, theirs = _integer(value), _integer(bound)
    if mine is None or theirs is None:
        return False
    return mine > theirs if operator == "Gt" else mine < theirs


def _integer(text: str) -> int | None:
    """The number, if it is one that 64 bits hold; anybody may write a longer one into a pod."""
    if not (match := _INTEGER.fullmatch(text)):
        return None
    number = int(match[1] + match[2])
    return number if number in _INT64 else None


def _matches_field(requirement: NodeSelectorRequirement, name: str) -> bool:
    """Of fields, one value can be asked for or ruled out; a node has but one, its name."""
    if len(requirement.values or ()) != 1 or requirement.operator not in ("In", "NotIn"):
        return False
    # A field that nodes do not have counts as empty.
    field = name if requirement.key == "metadata.name" else ""
    return (field in (requirement.values or ())) == (requirement.operator == "In")


NO_EXECUTE = "NoExecute"


def tolerates_no_execute(spec: PodSpec, node: Node) -> bool:
    """Whether the pod may stay on the node; taints against scheduling do not matter any more."""
    taints = [taint for taint in node.spec.taints or () if taint.effect == NO_EXECUTE]
    return all(is_taint_tolerated(taint, spec.tolerations or ()) for taint in taints)


def is_taint_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether one of these tolerations is about this taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
