"""Asynchronous access to the history, in a dedicated thread.

asyncio's default threads resolve names and write to disk, and may all be blocked just when the
history is needed.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from podstatus.observe.history.sqlite_store import HistoryEntry, HistoryReader, open_history_reader


class AsyncHistoryReader:
    """Reads a history that another thread or process writes, one query at a time."""

    def __init__(self, path: Callable[[], Path]) -> None:
        """`path` returns the path of the history, or raises HistoryError."""
        self._find_path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="read-history")

    async def timeline(self, namespace: str, name: str, *, after: int = 0) -> list[HistoryEntry]:
        """Return the entries of all pods of this name. Raises HistoryError."""
        return await self._read(lambda history: history.timeline(namespace, name, after=after))

    async def transitions(self, after: int, *, limit: int) -> list[HistoryEntry]:
        """Return the entries of all pods after an ID. Raises HistoryError."""
        return await self._read(lambda history: history.entries_after(after, limit=limit))

    def close(self) -> None:
        """Stop the thread without waiting for it."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _read(
        self, query: Callable[[HistoryReader], list[HistoryEntry]]
    ) -> list[HistoryEntry]:
        def read() -> list[HistoryEntry]:
            with open_history_reader(self._find_path()) as history:
                return query(history)

        return await asyncio.get_running_loop().run_in_executor(self._thread, read)
