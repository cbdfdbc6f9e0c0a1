"""Read the history for those who ask: in a thread of its own.

asyncio's own threads look up names and write to disks, and may all be waiting just when somebody
wants to know what happened.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from podstatus.observe.history.store import HistoryEntry, HistoryReader, open_history_reader


class AsyncHistoryReader:
    """Reads a history that somebody else writes, one question after the other."""

    def __init__(self, path: Callable[[], Path]) -> None:
        """`path` says where it is, or raises HistoryError."""
        self._path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="read-history")

    async def timeline(self, namespace: str, name: str, *, after: int = 0) -> list[HistoryEntry]:
        """What happened to the pods of this name. Raises HistoryError."""
        return await self._read(lambda history: history.timeline(namespace, name, after=after))

    async def transitions(self, after: int, *, limit: int) -> list[HistoryEntry]:
        """What happened on the whole after a number. Raises HistoryError."""
        return await self._read(lambda history: history.entries_after(after, limit=limit))

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _read(
        self, question: Callable[[HistoryReader], list[HistoryEntry]]
    ) -> list[HistoryEntry]:
        def read() -> list[HistoryEntry]:
            with open_history_reader(self._path()) as history:
                return question(history)

        return await asyncio.get_running_loop().run_in_executor(self._thread, read)
