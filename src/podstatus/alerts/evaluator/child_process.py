"""The evaluator child process: start it, send one request at a time, stop it.

Its environment has only search paths and locale, its files are a socket and a shared page, its
working directory is the root. While one thread waits for a response, another may `interrupt` it.
"""

import mmap
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TypeVar

import msgspec

from podstatus.alerts.evaluator.ports import EvaluatorError
from podstatus.alerts.evaluator.wire import (
    PAGE_BYTES,
    ChannelClosedError,
    EvaluationProgress,
    EvaluatorEnded,
    receive_frame,
    send_frame,
)
from podstatus.base.programs import child_environment, python_module_command

COMMAND = python_module_command("podstatus.alerts.evaluator.child_main")
STUCK_SECONDS = 30.0
"""Elapsed time without progress: the process is stopped, or its disk hangs at startup."""
_TICK_SECONDS = 0.5
_END_SECONDS = 1.0
"""For a killed process to be reaped; one that is stuck in the kernel is abandoned."""
_MAX_STDERR_BYTES = 500
_INHERITED_VARIABLES = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "HOME", "LANG", "LC_ALL")
_T = TypeVar("_T")


class EvaluatorDiedError(Exception):
    """The process has exited, or was killed because it hung or sent invalid frames."""


class EvaluatorChild:
    """One evaluator process and its channel."""

    def __init__(self) -> None:
        """Start the process. Raises EvaluatorError."""
        here, there = socket.socketpair()
        with there:
            page, stderr = os.memfd_create("rules"), os.memfd_create("stderr")
            try:
                os.ftruncate(page, PAGE_BYTES)
                self.progress = EvaluationProgress(mmap.mmap(page, PAGE_BYTES))
                self._process = subprocess.Popen(  # noqa: S603 - our own program
                    (*COMMAND, str(page)),
                    stdin=there.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    pass_fds=(page,),
                    cwd="/",
                    env=_environment(os.environ),
                    start_new_session=True,  # it does not get the Ctrl-C that drains pods
                )
            except OSError as error:
                here.close()
                os.close(stderr)
                why = os.strerror(error.errno).lower() if error.errno else str(error)
                raise EvaluatorError(f"cannot start the evaluator process: {why}") from error
            finally:
                os.close(page)
        self._channel, self._stderr = here, stderr
        self._channel.settimeout(_TICK_SECONDS)

    @property
    def pid(self) -> int:
        return self._process.pid

    def request(
        self, request: bytes, decoder: "msgspec.msgpack.Decoder[_T | EvaluatorEnded]"
    ) -> _T | EvaluatorEnded:
        """Send a request; return the response, or EvaluatorEnded if a rule killed the fork.

        Raises EvaluatorDiedError."""
        try:
            self._channel.settimeout(STUCK_SECONDS)
            send_frame(self._channel, request)
            self._channel.settimeout(_TICK_SECONDS)
            self._wait()
            return decoder.decode(receive_frame(self._channel))
        except (ChannelClosedError, OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise EvaluatorDiedError(str(error)) from error

    def _wait(self) -> None:
        """Wait for a response to begin, as long as there is progress. Raises OSError."""
        count, since = self.progress.count(), time.monotonic()
        while True:
            try:
                self._channel.recv(1, socket.MSG_PEEK)
            except TimeoutError:
                if (current := self.progress.count()) != count:
                    count, since = current, time.monotonic()
                elif time.monotonic() - since > STUCK_SECONDS:
                    raise
            else:
                return

    def interrupt(self) -> None:
        """Make a thread that waits for a response raise EvaluatorDiedError. From any thread."""
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._process.terminate()

    def stop(self) -> tuple[int | None, str]:
        """Stop the process; return its exit code (None if it is stuck) and the end of stderr."""
        # Collect its own exit code, before it is killed.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_TICK_SECONDS if self._is_peer_closed() else 0)
        for end in (self._process.terminate, self._kill):
            end()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
                break
        self._channel.close()
        stderr = os.pread(self._stderr, 64 * 1024, 0)[-_MAX_STDERR_BYTES:]
        os.close(self._stderr)
        return self._process.returncode, stderr.decode(errors="replace").strip()

    def _kill(self) -> None:
        """Kill the process group: the process and its forks."""
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _is_peer_closed(self) -> bool:
        self._channel.settimeout(0)
        try:
            return not self._channel.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that Python needs to find its modules."""
    cleaned = child_environment(environment)
    variables = {name: cleaned[name] for name in _INHERITED_VARIABLES if name in cleaned}
    if "PYTHONPATH" in variables:
        # The working directory of the child is another one.
        folders = map(os.path.abspath, variables["PYTHONPATH"].split(os.pathsep))
        variables["PYTHONPATH"] = os.pathsep.join(folders)
    return variables
