"""What goes wrong in the shim itself: a line each on stderr, which the agent keeps in a file."""

import contextlib
import os
import time

_STDERR = 2


def log_error(message: str) -> None:
    """Say it, in one line."""
    line = " ".join(message.split())
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    # There is nobody else to tell if that fails.
    with contextlib.suppress(OSError):
        os.write(_STDERR, f"{now} {os.getpid()} {line}\n".encode(errors="backslashreplace"))


def describe_error(error: BaseException) -> str:
    """An error that nobody foresaw, and where it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" ({trace.tb_frame.f_code.co_name}, line {trace.tb_lineno})" if trace else ""
    return f"{type(error).__name__}: {error}{where}"
