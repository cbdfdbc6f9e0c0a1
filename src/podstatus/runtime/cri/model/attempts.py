"""Which attempt of a container is meant, and which are no longer needed."""

from collections.abc import Sequence

from podstatus.runtime.cri.api.containers import (
    CONTAINER_EXITED,
    CriContainer,
    CriContainerMetadata,
)
from podstatus.runtime.cri.api.sandboxes import CriPodSandbox, CriPodSandboxMetadata

_RETAINED = 1
"""Older attempts that are retained beside the newest: its exit is the last state."""


def sandbox_attempt(sandbox: CriPodSandbox) -> int:
    """Return how many sandboxes the pod had before."""
    return (sandbox.metadata or CriPodSandboxMetadata()).attempt


def find_attempt(attempts: Sequence[CriContainer], restart_count: int) -> CriContainer | None:
    """Return the attempt with this restart count."""
    for attempt in attempts:
        if (attempt.metadata or CriContainerMetadata()).attempt == restart_count:
            return attempt
    return None


def prunable_attempts(older: Sequence[CriContainer]) -> tuple[CriContainer, ...]:
    """Return the ended attempts to remove, given all that are older than the newest."""
    newest_first = sorted(older, key=lambda attempt: -attempt.created_at)
    return tuple(a for a in newest_first[_RETAINED:] if a.state == CONTAINER_EXITED)
