"""Nodes that can be asked for a resize, and pods on them."""

import time
from collections.abc import Callable
from typing import Any

from tests.servers.pods import IMAGE, created, pods
from tests.support.processes.api_servers import Client, Document, Server

NODES = "/api/v1/nodes"
FEATURES = (
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
)
BURSTABLE: Document = {
    "requests": {"cpu": "100m", "memory": "64Mi"},
    "limits": {"cpu": "200m", "memory": "128Mi"},
}
SIDECAR = {"restartPolicy": "Always"}
_SECONDS = 60.0


def resources(requests: str = "", limits: str = "") -> Document:
    """`100m 1Gi`: cpu and memory, `-` for none."""
    sides = (("requests", requests), ("limits", limits))
    return {side: _amounts(text) for side, text in sides if text}


def _amounts(text: str) -> Document:
    named = zip(("cpu", "memory"), text.split(), strict=False)
    return {name: amount for name, amount in named if amount != "-"}


def container(name: str = "app", asked: Document | None = None, **more: Any) -> Document:
    return {"name": name, "image": IMAGE, "resources": asked or {}, **more}


def asking(asked: Document | None = None, **more: Any) -> Document:
    """The spec of a pod of one container."""
    return {"containers": [container(asked=asked)], **more}


def init(asked: Document, **more: Any) -> Document:
    """The spec of a pod with an init container."""
    return {"containers": [container()], "initContainers": [container("init", asked, **more)]}


class ResizeScene:
    """A node with 4 processors and 8Gi, that pods of a namespace are on."""

    def __init__(self, server: Server, namespace: str) -> None:
        self.client: Client = server.client
        self.namespace = namespace
        self.node = f"of-{namespace}"
        self._nodes: list[str] = []
        self.add_node(self.node)

    def add_node(
        self,
        name: str,
        *,
        features: tuple[str, ...] = FEATURES,
        system: str = "linux",
        bare: bool = False,
    ) -> str:
        amounts = {} if bare else {"cpu": "4", "memory": "8Gi", "pods": "110"}
        status = {"allocatable": amounts, "capacity": amounts, "declaredFeatures": list(features)}
        labels = {"kubernetes.io/os": system}
        # All at once: the real server asks its memory of nodes, which may be a moment old.
        body = {"metadata": {"name": name, "labels": labels}, "status": status}
        created(self.client, NODES, body)
        self._nodes.append(name)
        return name

    def close(self) -> None:
        for name in self._nodes:
            self.client.delete(f"{NODES}/{name}")

    def pod(self, spec: Document, name: str = "web", **metadata: Any) -> Document:
        spec = {"nodeName": self.node, **spec}
        body = {"metadata": {"name": name, **metadata}, "spec": spec}
        return created(self.client, pods(self.namespace), body)

    def stored(self, name: str = "web") -> Document:
        document: Document = self.client.get(self.path(name, ""))[1]
        return document

    def path(self, name: str = "web", subresource: str = "resize") -> str:
        return pods(self.namespace, name, subresource)

    def resize(self, change: Document, name: str = "web") -> tuple[int, Document]:
        """Patch it, as strategic merge."""
        return self.sent(lambda: self.client.patch(self.path(name), {"spec": change}))

    def sent(self, send: Callable[[], tuple[int, Document]]) -> tuple[int, Document]:
        """The answer once the server knows our nodes: the real one hears of them later."""
        until = time.monotonic() + _SECONDS
        code, answer = send()
        while code == 403 and time.monotonic() < until:
            if not any(f'node "{node}" not found' in answer["message"] for node in self._nodes):
                break
            time.sleep(0.05)
            code, answer = send()
        return code, answer
