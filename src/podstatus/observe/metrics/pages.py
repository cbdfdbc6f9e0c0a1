"""Metrics pages: collected in the event loop, rendered in a dedicated thread.

Rendering a page takes milliseconds. asyncio's default threads write checkpoints, and may all be
blocked by a slow disk, just when metrics are needed.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from podstatus.observe.metrics.exposition import MetricsPage, render
from podstatus.observe.metrics.model import LazySamples, Samples

CollectSamples = Callable[[], Iterable[Samples | LazySamples] | None]
"""Returns the samples of this moment; None: the page does not exist. Must not block."""


class MetricPages:
    """Serves `/metrics` and the pages below it. For one event loop."""

    def __init__(self, pages: Mapping[str, CollectSamples]) -> None:
        """`pages` by the last segment of their path; that of `/metrics` itself is empty."""
        self._pages = pages
        self._render_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metrics")

    async def page(self, name: str, accept: str = "") -> MetricsPage | None:
        """Return the page of this name for an Accept header; None if it does not exist."""
        collect = self._pages.get(name)
        entries = None if collect is None else collect()
        if entries is None:
            return None
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._render_thread, render, list(entries), accept)

    def close(self) -> None:
        """Stop the thread without waiting for it."""
        self._render_thread.shutdown(wait=False)
