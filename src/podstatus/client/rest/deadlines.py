"""End what takes too long, with one timer for all of it.

aiohttp has a timer for each request, which costs as much as all that we do for one above it, and
nearly none of them ever rings.
"""

import asyncio
from typing import Any, TypeAlias

Task: TypeAlias = asyncio.Task[Any]


class RequestDeadlines:
    """All that is under way has the same time, so who began first is due first.

    For one event loop. A task has one thing under way at a time:

        task = deadlines.begin()
        try:
            ...
        except asyncio.CancelledError:
            if deadlines.is_missed(task): ...
        finally:
            deadlines.end(task)
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._pending: dict[Task, tuple[float, int]] = {}
        """When each is due, and how often others had cancelled the task when it began."""
        self._missed: dict[Task, int] = {}
        """The latter, of those that were ended."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> Task:
        """The current task has something under way from now on."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline is for a task; call this from a coroutine")
        loop = task.get_loop()
        due = loop.time() + self._seconds
        self._pending[task] = due, task.cancelling()
        if self._timer is None:
            self._timer = loop.call_at(due, self._cancel_expired)
        return task

    def is_missed(self, task: Task) -> bool:
        """Whether the task was cancelled because it took too long, and by nobody else."""
        cancelling = self._missed.pop(task, None)
        return cancelling is not None and task.uncancel() <= cancelling

    def end(self, task: Task) -> None:
        """It is over, one way or another."""
        if self._pending.pop(task, None) is None:
            self.is_missed(task)

    def _cancel_expired(self) -> None:
        """End what is due, and look again when the next one is."""
        self._timer = None
        for task, (due, cancelling) in tuple(self._pending.items()):
            loop = task.get_loop()
            if loop.time() < due:
                self._timer = loop.call_at(due, self._cancel_expired)
                return
            del self._pending[task]
            self._missed[task] = cancelling
            task.cancel()
