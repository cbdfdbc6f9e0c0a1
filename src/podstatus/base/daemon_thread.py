"""Run a blocking function in a daemon thread, which does not delay the exit of the process.

asyncio.to_thread delays the shutdown of the loop until the function returns, and uses a thread pool
that is bounded and shared with the rest of the process.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Argument = TypeVar("Argument")
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
    """Calls in daemon threads, at most one at a time for a function and its argument.

    Callers that come meanwhile share it: a disk or a name server that hangs takes one thread. For
    one event loop.
    """

    def __init__(self) -> None:
        self._pending: dict[tuple[Callable[..., Any], Any], asyncio.Task[Any]] = {}

    async def call(self, work: Callable[[Argument], Result], argument: Argument) -> Result:
        """Return `work(argument)` or raise its exception; a caller may give up alone."""
        key = work, argument
        if key not in self._pending:
            call = asyncio.create_task(run_in_daemon_thread(work, argument))
            call.add_done_callback(lambda _: self._pending.pop(key))
            self._pending[key] = call
        result: Result = await asyncio.shield(self._pending[key])
        return result


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
