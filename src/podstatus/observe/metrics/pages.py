"""The pages of metrics: looked up in the event loop, written down in a thread of their own.

A page takes milliseconds to write. asyncio's own threads write checkpoints, and may all be waiting
for a slow disk: just then somebody wants to see metrics.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from podstatus.observe.metrics.exposition import MetricsPage, render
from podstatus.observe.metrics.model import LazySamples, Samples

CollectSamples = Callable[[], Iterable[Samples | LazySamples] | None]
"""What is to be told at this moment; None: nobody knows. Must not wait."""


class MetricPages:
    """Answers what is at `/metrics`, and below it. For one event loop."""

    def __init__(self, pages: Mapping[str, CollectSamples]) -> None:
        """By the last part of their path; that of `/metrics` itself is empty."""
        self._pages = pages
        self._render_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metrics")

    async def page(self, name: str, accept: str = "") -> MetricsPage | None:
        """The page of this name for somebody who accepts this; None if nobody knows."""
        look = self._pages.get(name)
        moment = None if look is None else look()
        if moment is None:
            return None
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._render_thread, render, list(moment), accept)

    def close(self) -> None:
        """End the thread."""
        self._render_thread.shutdown(wait=False)
