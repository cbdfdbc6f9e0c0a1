"""Messages about the limits of containers and sandboxes."""

from collections.abc import Mapping

from podstatus.runtime.cri.api.codec import CriMessage


class CriHugepageLimit(CriMessage, frozen=True, kw_only=True):
    page_size: str = ""
    limit: int = 0


class CriLinuxContainerResources(CriMessage, frozen=True, kw_only=True):
    cpu_period: int = 0
    cpu_quota: int = 0
    cpu_shares: int = 0
    memory_limit_in_bytes: int = 0
    oom_score_adj: int = 0
    hugepage_limits: tuple[CriHugepageLimit, ...] = ()
    unified: Mapping[str, str] = {}
    memory_swap_limit_in_bytes: int = 0


class CriContainerResources(CriMessage, frozen=True, kw_only=True):
    linux: CriLinuxContainerResources | None = None
