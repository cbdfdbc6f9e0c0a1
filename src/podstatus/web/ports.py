"""The interfaces through which the HTTPS port gets its data, and its options."""

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


class NodePods(Protocol):
    """The pods of this node. Implementations must not block."""

    def pods(self) -> Sequence[Pod]:
        """The desired pods of this node, each with its newest status."""

    def find_pod(self, namespace: str, name: str, uid: str = "") -> Pod | None:
        """The pod of this name; with a UID, only if the pod or its mirror pod has that UID."""

    def running_pods(self) -> Sequence[RuntimePod]:
        """All pods that the runtime lists."""


class Drain(Protocol):
    """Terminates all pods of this node. Implementations must not block."""

    def begin(self) -> None:
        """Terminate all pods, and reject new ones."""

    def cancel(self) -> None:
        """Stop draining and accept pods again."""

    def progress(self) -> msgspec.Struct:
        """The progress, as it is sent to clients."""


class UsageProvider(Protocol):
    """Measures the resource usage of the node and its pods. Must not block."""

    @property
    def snapshot(self) -> UsageSnapshot | None:
        """The newest measurement; None before the first one."""


class AgentDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's version and configuration, without secrets."""

    version: str
    kubernetes: str
    """The Kubernetes version whose kubelet it follows."""
    python: str
    started: int
    """In nanoseconds since the Unix epoch."""
    configuration: Mapping[str, Any]
    """The supported fields of the KubeletConfiguration."""
    flags: Mapping[str, str]
    """All flags by name, without dashes."""


class ReviewClient(Protocol):
    """Sends reviews to the API server. Raises the errors of `podstatus.kube.api_errors`."""

    async def review_token(self, spec: TokenReviewSpec) -> TokenReviewStatus:
        """Authenticate a bearer token by a TokenReview."""

    async def review_access(self, spec: SubjectAccessReviewSpec) -> SubjectAccessReviewStatus:
        """Authorize an action of a user."""


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Authentication, authorization and limits of the port."""

    node_name: str
    token: str
    """The agent's token; it authorizes everything."""
    token_webhook: bool = False
    """Whether the API server authenticates other tokens (TokenReview)."""
    authorization_webhook: bool = False
    """Whether the API server authorizes users (SubjectAccessReview); if not, any authenticated user
    is authorized."""
    token_cache_seconds: float = 120.0
    """How long to cache the result of a token review."""
    allowed_cache_seconds: float = 300.0
    denied_cache_seconds: float = 30.0
    idle_timeout_seconds: float = 4 * 3600.0
    """How long a stream may be idle before it is closed; 0: for ever."""
    max_streams: int = 100
    """Maximum number of concurrent log, exec and attach streams."""

    def __repr__(self) -> str:
        return f"ServerOptions(node_name={self.node_name!r}, …)"
