"""A child process that evaluates rules: started, asked one thing at a time, ended.

It gets no environment but search paths, no files but a socket and a page of memory, and the root
as its folder. A thread may wait for its answer; another may `close` it meanwhile.
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

COMMAND = python_module_command("podstatus.alerts.evaluator.worker")
STUCK_SECONDS = 30.0
"""Without any progress, of any clock: it is stopped, or its disk hangs at the start."""
_TICK_SECONDS = 0.5
_END_SECONDS = 1.0
"""For a killed process to be gone; one that a driver holds is left to itself."""
_MAX_STDERR_BYTES = 500
_INHERITED_VARIABLES = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "HOME", "LANG", "LC_ALL")
_T = TypeVar("_T")


class WorkerDiedError(Exception):
    """The process has ended, or was killed because it hangs or sends no answers."""


class WorkerProcess:
    """One process, until it is dead."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """Start it. Raises EvaluatorError."""
        here, there = socket.socketpair()
        with there:
            page, words = os.memfd_create("rules"), os.memfd_create("words")
            try:
                os.ftruncate(page, PAGE_BYTES)
                self.progress = EvaluationProgress(mmap.mmap(page, PAGE_BYTES))
                self._process = subprocess.Popen(  # noqa: S603 - our own program
                    (*COMMAND, str(page)),
                    stdin=there.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=words,
                    pass_fds=(page,),
                    cwd="/",
                    env=_environment(os.environ if environment is None else environment),
                    start_new_session=True,  # it is not ended by the Ctrl-C that drains pods
                )
            except OSError as error:
                here.close()
                os.close(words)
                why = os.strerror(error.errno).lower() if error.errno else str(error)
                raise EvaluatorError(
                    f"cannot start the process that evaluates rules: {why}"
                ) from error
            finally:
                os.close(page)
        self._channel, self._stderr = here, words
        self._channel.settimeout(_TICK_SECONDS)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def request(
        self, request: bytes, decoder: "msgspec.msgpack.Decoder[_T | EvaluatorEnded]"
    ) -> _T | EvaluatorEnded:
        """Its answer, or that a rule has ended what evaluated it. Raises DiedError."""
        try:
            self._channel.settimeout(STUCK_SECONDS)
            send_frame(self._channel, request)
            self._channel.settimeout(_TICK_SECONDS)
            self._wait()
            return decoder.decode(receive_frame(self._channel))
        except (ChannelClosedError, OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise WorkerDiedError(str(error)) from error

    def _wait(self) -> None:
        """Until an answer begins, for as long as there is progress. Raises OSError."""
        seen, since = self.progress.count(), time.monotonic()
        while True:
            try:
                self._channel.recv(1, socket.MSG_PEEK)
            except TimeoutError:
                if (count := self.progress.count()) != seen:
                    seen, since = count, time.monotonic()
                elif time.monotonic() - since > STUCK_SECONDS:
                    raise
            else:
                return

    def interrupt(self) -> None:
        """Have a thread that waits for an answer get DiedError. From any thread."""
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._process.terminate()

    def stop(self) -> tuple[int | None, str]:
        """End it; its exit code, None if it would not go, and its last words."""
        # What it died of, before it is killed.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_TICK_SECONDS if self._is_peer_closed() else 0)
        for end in (self._process.terminate, self._kill):
            end()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
                break
        self._channel.close()
        words = os.pread(self._stderr, 64 * 1024, 0)[-_MAX_STDERR_BYTES:]
        os.close(self._stderr)
        return self._process.returncode, words.decode(errors="replace").strip()

    def _kill(self) -> None:
        """It and its forks: they are a group of their own."""
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
    """What Python needs to find its modules."""
    cleaned = child_environment(environment)
    kept = {name: cleaned[name] for name in _INHERITED_VARIABLES if name in cleaned}
    if "PYTHONPATH" in kept:
        # Its folder is another one.
        folders = map(os.path.abspath, kept["PYTHONPATH"].split(os.pathsep))
        kept["PYTHONPATH"] = os.pathsep.join(folders)
    return kept
