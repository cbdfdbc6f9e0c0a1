"""What admission adds to every pod before it is stored.

Upstream: plugin/pkg/admission/defaulttolerationseconds and priority, v1.36.4. Of priority
classes there are only the two that every cluster has.
"""

from podstatus.apiserver.strategy import Document

_WITHSTOOD = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_SECONDS = 300
_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_OF_PRIORITY = ("priority", "preemptionPolicy")


def admitted_new(spec: Document) -> Document:
    """The spec of a new pod with its priority, and how long it bears a node that is gone."""
    priority = _PRIORITIES.get(spec.get("priorityClassName", ""), 0)
    defaults = {"priority": priority, "preemptionPolicy": "PreemptLowerPriority"}
    return _with_tolerations(defaults | spec)


def admitted_update(spec: Document, old: Document) -> Document:
    """The spec of an updated pod with what admission gave to it before."""
    kept = {key: old[key] for key in _OF_PRIORITY if key in old}
    return _with_tolerations(kept | spec)


def _with_tolerations(spec: Document) -> Document:
    given = spec.get("tolerations") or []
    missing = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
        for key in _WITHSTOOD
        if not any(_withstands(toleration, key) for toleration in given)
    ]
    return spec | {"tolerations": given + missing} if missing else spec


def _withstands(toleration: Document, key: str) -> bool:
    return (toleration.get("key") or key) == key and (
        toleration.get("effect") or "NoExecute"
    ) == "NoExecute"
