"""How commands end that fail: a message on standard error, and the exit code."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from podstatus.cli.client.request_errors import RequestError
from podstatus.cli.terminal import write_message


def warn(message: str) -> None:
    """Print a message to standard error."""
    write_message(f"podstatus: {message}", err=True)


def fail(message: str, code: int = 1) -> NoReturn:
    """Print an error and exit with `code`."""
    warn(message)
    raise typer.Exit(code)


def usage_error(message: str) -> NoReturn:
    """Print an error of the command line and exit with code 2."""
    fail(message, 2)


@contextmanager
def report_errors() -> Iterator[None]:
    """Print a RequestError in one line and exit; exit on Ctrl-C and on a closed pipe."""
    try:
        yield
    except RequestError as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does. Prevent an error from the flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(0) from None
