"""Targets of registry calls, and pods to create."""

from typing import Any

from podstatus.apiserver.http.router import ResourcePath, parse_path
from podstatus.apiserver.strategies.base import Document


def target(path: str) -> ResourcePath:
    target = parse_path(path)
    assert target is not None
    return target


PODS = target("/api/v1/namespaces/default/pods")


NAMESPACES = target("/api/v1/namespaces")


def pod(name: str = "a", *, node: str = "n1", **metadata: Any) -> Document:
    spec: Document = {"containers": [{"name": "app", "image": "app:1"}]}
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name} | metadata,
        "spec": spec,
    }
