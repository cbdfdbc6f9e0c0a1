"""Whether a pod wants to be on a node: its node selector and its required node affinity.

Upstream: GetRequiredNodeAffinity, component-helpers v0.36.4,
scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

import re
from collections.abc import Mapping

from podstatus.kube.pod_spec import NodeSelectorRequirement, NodeSelectorTerm, PodSpec

_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
_INT64 = range(-(2**63), 2**63)


def is_wanted_on(spec: PodSpec, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node of this name and with these labels is one that the pod asks for."""
    if not (spec.node_selector or {}).items() <= labels.items():
        return False
    affinity = spec.affinity and spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    if not required:
        return True
    return any(_selects(term, name, labels) for term in required.node_selector_terms or ())


def _selects(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    """All requirements of a term have to hold; a term without any selects nothing."""
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    return (
        bool(expressions or fields)
        and all(_holds(requirement, labels) for requirement in expressions)
        and all(_holds_of_field(requirement, name) for requirement in fields)
    )


def _holds(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
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
            return _compares(requirement.operator, value, values[0])
    return False


def _compares(operator: str, value: str, bound: str) -> bool:
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


def _holds_of_field(requirement: NodeSelectorRequirement, name: str) -> bool:
    """Of fields, one value can be asked for or ruled out; a node has but one, its name."""
    if len(requirement.values or ()) != 1 or requirement.operator not in ("In", "NotIn"):
        return False
    # A field that nodes do not have counts as empty.
    field = name if requirement.key == "metadata.name" else ""
    return (field in (requirement.values or ())) == (requirement.operator == "In")
