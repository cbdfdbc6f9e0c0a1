"""Stop with the parent process: standard input is a pipe from it, which closes when it exits."""

import asyncio
import os
from collections.abc import Callable

from podstatus.agent.errors import EXIT_CONFIG, AgentError

_STDIN = 0


def call_on_stdin_eof(call: Callable[[], None]) -> None:
    """Call `call` once the other end of standard input is closed. Raises AgentError."""
    loop = asyncio.get_running_loop()

    def on_readable() -> None:
        if not os.read(_STDIN, 4096):
            loop.remove_reader(_STDIN)
            call()

    try:
        loop.add_reader(_STDIN, on_readable)
    except (OSError, ValueError) as error:  # closed, or a regular file, which epoll rejects
        message = "--stop-at-eof: standard input is not a pipe"
        raise AgentError(message, code=EXIT_CONFIG) from error
