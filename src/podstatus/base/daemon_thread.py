"""Work in a thread that does not keep the process from ending.

asyncio.to_thread lets the end of the loop wait for the work, and has a bounded number of threads
that everything else of the process needs, too.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


async def run_in_daemon_thread(
    work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """What the work returns or raises; its thread is its own.

    If this is cancelled the thread goes on, and its result is dropped.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def run() -> None:
        try:
            result = work(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - raised where the work is awaited
            _set_result(loop, done, done.set_exception, error)
        else:
            _set_result(loop, done, done.set_result, result)

    threading.Thread(target=run, name=f"podstatus-{_thread_name(work)}", daemon=True).start()
    return await done


def _set_result(
    loop: asyncio.AbstractEventLoop,
    done: "asyncio.Future[Any]",
    setter: Callable[[Any], None],
    value: object,
) -> None:
    def unless_cancelled() -> None:
        if not done.done():
            setter(value)

    with suppress(RuntimeError):  # the loop has ended meanwhile
        loop.call_soon_threadsafe(unless_cancelled)


def _thread_name(work: Callable[..., object]) -> str:
    return getattr(work, "__name__", "work").strip("_").replace("_", "-")
