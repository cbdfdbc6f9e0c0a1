"""Run a blocking function in a daemon thread, which does not delay the exit of the process.

asyncio.to_thread delays the shutdown of the loop until the function returns, and uses a thread pool
that is bounded and shared with the rest of the process.
"""

import asyncio
import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Argument = TypeVar("Argument", bound=Hashable)
Result = TypeVar("Result")


async def run_in_daemon_thread(
    work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Run the function in a new thread; return its result or raise its exception.

    If the caller is cancelled, the thread continues and its result is dropped.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def run() -> None:
        try:
            result = work(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - raised in the awaiting task
            _set_result(loop, done, done.set_exception, error)
        else:
            _set_result(loop, done, done.set_result, result)

    threading.Thread(target=run, name=f"podstatus-{_thread_name(work)}", daemon=True).start()
    return await done


class SharedCalls:
    """Calls in daemon threads, at most one per function and argument: callers share it.

    So a function that hangs occupies one thread, however often it is called. For one event loop.
    """

    def __init__(self) -> None:
        self._in_flight: dict[tuple[Callable[..., Any], Hashable], asyncio.Task[Any]] = {}

    async def run(self, work: Callable[[Argument], Result], argument: Argument) -> Result:
        """Return `work(argument)` or raise its exception. A cancelled caller stops waiting."""
        key = (work, argument)
        if key not in self._in_flight:
            call = asyncio.create_task(run_in_daemon_thread(work, argument))
            call.add_done_callback(lambda done: self._forget(key, done))
            self._in_flight[key] = call
        shared: asyncio.Task[Result] = self._in_flight[key]
        return await asyncio.shield(shared)

    def _forget(self, key: tuple[Callable[..., Any], Hashable], done: "asyncio.Task[Any]") -> None:
        del self._in_flight[key]
        if not done.cancelled():
            done.exception()  # retrieved, even if every caller was cancelled


def _set_result(
    loop: asyncio.AbstractEventLoop,
    done: "asyncio.Future[Any]",
    setter: Callable[[Any], None],
    value: object,
) -> None:
    def unless_cancelled() -> None:
        if not done.done():
            setter(value)

    with suppress(RuntimeError):  # the loop was closed
        loop.call_soon_threadsafe(unless_cancelled)


def _thread_name(work: Callable[..., object]) -> str:
    return getattr(work, "__name__", "work").strip("_").replace("_", "-")
