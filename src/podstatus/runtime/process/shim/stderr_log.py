"""Errors of the shim itself: one line each on stderr, which the agent redirects to a file."""

import contextlib
import os
import time

_STDERR = 2


def log_error(message: str) -> None:
    """Write one timestamped line; whitespace is collapsed."""
    line = " ".join(message.split())
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    # If this fails, there is no other place to report to.
    with contextlib.suppress(OSError):
        os.write(_STDERR, f"{now} {os.getpid()} {line}\n".encode(errors="backslashreplace"))


def describe_error(error: BaseException) -> str:
    """Describe an unexpected error and where it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" ({trace.tb_frame.f_code.co_name}, line {trace.tb_lineno})" if trace else ""
    return f"{type(error).__name__}: {error}{where}"
