"""A control plane, what it shows, and the nodes that it hears."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy
from tests.servers.nodes.control_planes import POLICY, control_plane
from tests.servers.nodes.fake_kubelets import FakeKubelets
from tests.servers.nodes.stories import Stories
from tests.support.processes.api_servers import Document, Kind, Server

BOTH = ("not-ready", "unreachable")


class Scene:
    """Nodes and pods that live and die."""

    def __init__(self, server: Server, stories: Stories, kubelets: FakeKubelets) -> None:
        self.server = server
        self.stories = stories
        self.kubelets = kubelets
        self.namespace = server.new_namespace()

    @classmethod
    @contextmanager
    def on(cls, kind: Kind, folder: Path, policy: NodeMonitorPolicy = POLICY) -> Iterator["Scene"]:
        with (
            control_plane(kind, folder, policy) as server,
            Stories.of(server) as stories,
            FakeKubelets.on(server) as kubelets,
        ):
            yield cls(server, stories, kubelets)

    def run_pod(self, name: str, node: str, *, ready: str = "True", **spec: Any) -> None:
        self.kubelets.run_pod(self.namespace, name, node, ready=ready, **spec)

    def wait_taints(self, node: str, *expected: str) -> None:
        """Come back when a node has these NoExecute taints."""
        self.stories.wait(
            lambda: self.stories.taints(node, "NoExecute")[-1:] == [" ".join(expected)]
        )

    def wait_no_schedule(self, node: str, *expected: str) -> None:
        self.stories.wait(
            lambda: self.stories.taints(node, "NoSchedule")[-1:] == [" ".join(expected)]
        )

    def wait_pod(self, name: str, text: str) -> None:
        """Return when this is recorded about the pod."""
        self.stories.wait(lambda: text in self.stories.pod(name)[-1])

    def wait_event(self, name: str, text: str) -> None:
        """Come back when an event about an object tells this; events may be late."""
        self.stories.wait(lambda: any(text in it for it in self.stories.events(name)))


def tolerating(*keys: str, seconds: int | None) -> list[Document]:
    """Tolerations of NoExecute, for so long; None for ever."""
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    tolerated = {"operator": "Exists", "effect": "NoExecute"} | limit
    return [tolerated | {"key": f"node.kubernetes.io/{key}"} for key in keys]
