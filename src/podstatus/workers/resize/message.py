"""Event messages about resizes.

Upstream: podResizeMessage, pkg/kubelet/events/resize.go v1.36.4.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod

_GO_JSON_ESCAPES = (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e"))
"""encoding/json of Go escapes these for HTML by default."""


def resize_message(summary_text: str, pod: Pod, generation: int, error: str = "") -> str:
    """The message of an event about a resize of the pod to its current spec."""
    summary: dict[str, Any] = {}
    for key, containers in (
        ("initContainers", pod.spec.init_containers),
        ("containers", pod.spec.containers),
    ):
        if containers:
            summary[key] = _container_summaries(containers)
    summary["generation"] = generation
    if error:
        summary["error"] = error
    text = msgspec.json.encode(summary).decode()
    for plain, escaped in _GO_JSON_ESCAPES:
        text = text.replace(plain, escaped)
    return f"{summary_text}: {text}"


def _container_summaries(containers: Sequence[Container]) -> list[dict[str, Any]]:
    return [{"name": c.name, "resources": _sort_keys(to_document(c.resources))} for c in containers]


def _sort_keys(resources: dict[str, Any]) -> dict[str, Any]:
    return {
        key: dict(sorted(value.items())) if isinstance(value, dict) else value
        for key, value in resources.items()
    }
