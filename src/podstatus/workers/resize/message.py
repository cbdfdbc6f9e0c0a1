"""What is told about a resize: who has, or is to have, what.

Upstream: podResizeMessage, pkg/kubelet/events/resize.go v1.36.4.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod

_ESCAPED = (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e"))
"""Go writes JSON that can stand in a web page."""


def resize_words(what: str, pod: Pod, generation: int, error: str = "") -> str:
    """The text of an event about a resize of the pod to what its spec says here."""
    summary: dict[str, Any] = {}
    for key, containers in (
        ("initContainers", pod.spec.init_containers),
        ("containers", pod.spec.containers),
    ):
        if containers:
            summary[key] = _listed(containers)
    summary["generation"] = generation
    if error:
        summary["error"] = error
    text = msgspec.json.encode(summary).decode()
    for plain, escaped in _ESCAPED:
        text = text.replace(plain, escaped)
    return f"{what}: {text}"


def _listed(containers: Sequence[Container]) -> list[dict[str, Any]]:
    return [{"name": c.name, "resources": _sorted(to_document(c.resources))} for c in containers]


def _sorted(resources: dict[str, Any]) -> dict[str, Any]:
    return {
        key: dict(sorted(value.items())) if isinstance(value, dict) else value
        for key, value in resources.items()
    }
