"""The history in the root-dir: opened, asked, closed. What goes wrong with it stops nobody."""

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path

from podstatus.agent.settings import AgentSettings
from podstatus.observe.history.read_thread import HistoryReads
from podstatus.observe.history.store import History, HistoryError, Moment
from podstatus.observe.history.writer import HistoryCounts, Retention

logger = logging.getLogger(__name__)

HISTORY = "history.db"
"""In the root-dir."""


class HistoryFile:
    """The history, if there is one."""

    def __init__(self, settings: AgentSettings, root: Path) -> None:
        self.path = root / HISTORY
        self.problem = ""
        """Why there is none, though one is wanted."""
        self.retention = Retention(days=settings.history_days, size=settings.history_size)
        self.file: History | None = None
        """For the one who writes it."""
        self._counts: Callable[[], HistoryCounts] | None = None
        self._reads = HistoryReads(self.require)
        if settings.history:
            self._open()

    def _open(self) -> None:
        try:
            self.file = History.open(self.path)
        except HistoryError as error:
            self.problem = str(error)
            logger.error("no history is kept: error=%s", error)

    def counted_by(self, counts: Callable[[], HistoryCounts]) -> None:
        """Who writes it knows what became of what was told."""
        self._counts = counts

    @property
    def counts(self) -> HistoryCounts:
        """What became of what was told."""
        return HistoryCounts(problem=self.problem) if self._counts is None else self._counts()

    def health(self) -> str | None:
        """Why nothing is written at the moment; None if it is."""
        return self.counts.problem or None

    def require(self) -> Path:
        """Where it is. Raises HistoryError if there is none."""
        if self.file is None:
            raise HistoryError(self.problem or "no history is kept here (--no-history)")
        return self.path

    async def timeline(self, namespace: str, name: str, *, after: int = 0) -> list[Moment]:
        """What happened to the pods of this name. Raises HistoryError."""
        return await self._reads.timeline(namespace, name, after=after)

    async def moments(self, after: int, *, most: int) -> list[Moment]:
        """What happened on the whole after a number. Raises HistoryError."""
        return await self._reads.moments(after, most=most)

    def close(self) -> None:
        """Let go of the file, when nobody writes any more, and of the thread that reads it."""
        self._reads.close()
        if self.file is not None:
            try:
                self.file.close()
            except sqlite3.Error as error:
                logger.warning("history not closed: error=%s", error)
