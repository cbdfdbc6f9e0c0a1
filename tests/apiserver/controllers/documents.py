"""Nodes and pods as the scheduler reads them."""

from typing import Any

Document = dict[str, Any]


NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


LABELS = {"disk": "ssd", "cores": "8"}


def node(name: str = "n1", *, ready: str = "True", **spec: Any) -> Document:
    return {
        "metadata": {"name": name, "labels": LABELS},
        "spec": {"taints": [NOT_READY]} | spec,
        "status": {
            "allocatable": {"cpu": "2", "memory": "1Gi", "pods": "2"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def pod(requests: Document | None = None, **spec: Any) -> Document:
    container = {"name": "c", "image": "i", "resources": {"requests": requests or {}}}
    return {"metadata": {"name": "p"}, "spec": {"containers": [container]} | spec}
