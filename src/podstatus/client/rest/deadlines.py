"""Deadlines of requests, with one timer for all of them.

aiohttp's timer per request costs as much as the client's own work for a request, and almost none of
them ever fires.
"""

import asyncio
from typing import Any, TypeAlias

Task: TypeAlias = asyncio.Task[Any]


class RequestDeadlines:
    """Cancels tasks whose request exceeds the timeout. It is the same for all requests, so the
    oldest request is due first.

    For one event loop. A task has one request in flight at a time:

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
        """The deadline of each task, and its number of cancellation requests at the start."""
        self._missed: dict[Task, int] = {}
        """That number, for tasks that were cancelled by a deadline."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> Task:
        """Start the deadline of the current task, and return the task."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline needs a task; call begin() in a coroutine")
        loop = task.get_loop()
        due = loop.time() + self._seconds
        self._pending[task] = due, task.cancelling()
        if self._timer is None:
            self._timer = loop.call_at(due, self._cancel_expired)
        return task

    def is_missed(self, task: Task) -> bool:
        """Whether the task was cancelled by its deadline only, not by other code as well."""
        cancelling = self._missed.pop(task, None)
        return cancelling is not None and task.uncancel() <= cancelling

    def end(self, task: Task) -> None:
        """Remove the deadline, whatever the outcome of the request."""
        if self._pending.pop(task, None) is None:
            self.is_missed(task)

    def _cancel_expired(self) -> None:
        """Cancel the tasks that are due, and set the timer for the next deadline."""
        self._timer = None
        for task, (due, cancelling) in tuple(self._pending.items()):
            loop = task.get_loop()
            if loop.time() < due:
                self._timer = loop.call_at(due, self._cancel_expired)
                return
            del self._pending[task]
            self._missed[task] = cancelling
            task.cancel()
