"""Match a pod against a node: node selector and required node affinity.

Upstream: GetRequiredNodeAffinity, component-helpers v0.36.4,
scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

from collections.abc import Mapping

from podstatus.kube.objects.pod_spec import NodeSelectorRequirement, NodeSelectorTerm, PodSpec
from podstatus.kube.scalars.go_text import parse_int64


def matches_node(spec: PodSpec, name: str, labels: Mapping[str, str]) -> bool:
    """Return whether node selector and required affinity match a node of this name and labels."""
    if not (spec.node_selector or {}).items() <= labels.items():
        return False
    affinity = spec.affinity and spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    if not required:
        return True
    return any(_matches_term(term, name, labels) for term in required.node_selector_terms or ())


def _matches_term(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    """Return whether all requirements match; a term without requirements matches no node."""
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    return (
        bool(expressions or fields)
        and all(_matches_requirement(requirement, labels) for requirement in expressions)
        and all(_matches_field(requirement, name) for requirement in fields)
    )


def _matches_requirement(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """Return whether a label matches; an unknown operator or wrong number of values never does."""
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
    number, limit = parse_int64(value), parse_int64(bound)
    if number is None or limit is None:
        return False
    return number > limit if operator == "Gt" else number < limit


def _matches_field(requirement: NodeSelectorRequirement, name: str) -> bool:
    """Return whether a field matches: In and NotIn with one value, of `metadata.name`."""
    if len(requirement.values or ()) != 1 or requirement.operator not in ("In", "NotIn"):
        return False
    # An unknown field counts as empty.
    field = name if requirement.key == "metadata.name" else ""
    return (field in (requirement.values or ())) == (requirement.operator == "In")
