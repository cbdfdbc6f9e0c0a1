"""What the agent's HTTPS port needs from others."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from podstatus.kube.objects.authentication import (
    SubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
    TokenReviewSpec,
    TokenReviewStatus,
)
from podstatus.kube.objects.pod import Pod
from podstatus.node.decide.readings import UsageSnapshot
from podstatus.runtime.port import RuntimePod
from podstatus.runtime.streams import Logs, Streaming

__all__ = [
    "AgentDescription",
    "Drain",
    "Logs",
    "NodePods",
    "ReviewClient",
    "ServerOptions",
    "Streaming",
    "UsageProvider",
]


class NodePods(Protocol):
    """The pods of this node. Must not wait."""

    def pods(self) -> Sequence[Pod]:
        """All that are to run here, each with its newest status."""

    def find_pod(self, namespace: str, name: str, uid: str = "") -> Pod | None:
        """One of them; if a UID is given, only if it has that one, or its mirror pod has."""

    def running_pods(self) -> Sequence[RuntimePod]:
        """Those of which the runtime has something."""


class Drain(Protocol):
    """Who ends all pods of this node, and says how far that is. Must not wait."""

    def begin(self) -> None:
        """End all pods, and take none."""

    def cancel(self) -> None:
        """Take pods again."""

    def progress(self) -> msgspec.Struct:
        """How far it is, as it is told."""


class UsageProvider(Protocol):
    """Who measures what node and pods use. Must not wait."""

    @property
    def snapshot(self) -> UsageSnapshot | None:
        """The newest one, or None before the first."""


class AgentDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent tells of itself; no secrets are in it."""

    version: str
    kubernetes: str
    """The version that it is like."""
    python: str
    started: int
    """In nanoseconds since the Unix epoch."""
    configuration: Mapping[str, Any]
    """A KubeletConfiguration with what is honoured of it."""
    flags: Mapping[str, str]
    """All of them, as they would be given."""


class ReviewClient(Protocol):
    """Who asks the API server about others. Raises the errors of `podstatus.kube.errors`."""

    async def review_token(self, spec: TokenReviewSpec) -> TokenReviewStatus:
        """Whose token it is."""

    async def review_access(self, spec: SubjectAccessReviewSpec) -> SubjectAccessReviewStatus:
        """Whether somebody may do something."""


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the owner of the node wants its port."""

    node_name: str
    token: str
    """Who has it may everything."""
    token_webhook: bool = False
    """Whether the API server is asked whose the other tokens are."""
    authorization_webhook: bool = False
    """Whether it is asked what others may; otherwise all that are known may everything."""
    token_cache_seconds: float = 120.0
    """How long an answer about a token is good for."""
    allowed_cache_seconds: float = 300.0
    denied_cache_seconds: float = 30.0
    idle_timeout_seconds: float = 4 * 3600.0
    """After which a stream on which nothing happens is ended; 0: never."""
    max_streams: int = 100
    """How many logs are sent, and processes talked to, at the same time."""

    def __repr__(self) -> str:
        return f"Wishes(node_name={self.node_name!r}, …)"
