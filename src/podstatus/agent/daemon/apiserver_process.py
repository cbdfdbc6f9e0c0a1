"""The embedded API server as a child process of the agent.

The child exits when its standard input closes, so it never outlives the agent, not even one that
was killed. It keeps its port when it is restarted.
"""

import asyncio
import logging
import os
import random
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self
from urllib.parse import urlsplit

import msgspec

from podstatus.apiserver.state_dir import StateDirError, lock_holder
from podstatus.apiserver.storage.marker import MarkerFile, StorageError
from podstatus.apiserver.storage.sqlite_file import DATABASE
from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.base.msgspec_json import decode_json
from podstatus.base.programs import child_environment, python_module_command

logger = logging.getLogger(__name__)

READY_FD_VARIABLE = "PODSTATUS_READY_FD"
"""Environment variable of the child: the inherited pipe for its `EmbeddedServerAccess`."""
APISERVER_COMMAND = (*python_module_command("podstatus.cli"), "apiserver")
_START_TIMEOUT_SECONDS = 30.0
"""A start takes about 1 s on an idle machine."""
STOP_TIMEOUT_SECONDS = 1.0
"""Then the child is killed: the whole agent stops within 5 s."""
_BACKOFF = Backoff(initial_seconds=0.2, max_seconds=10.0)
_BACKOFF_RESET_SECONDS = 60.0
"""Reset the back-off after this much uptime."""
_LOCK_POLLS, _LOCK_POLL_SECONDS = 50, 0.1
_MAX_ERROR_LINES = 5
_MAX_LOG_BYTES = 10 * 2**20
_ROTATION_CHECK_SECONDS = 5.0
_COPY_BYTES = 2**16


class ApiServerStartError(Exception):
    """The child did not start; the message has its last output."""


class EmbeddedServerAccess(msgspec.Struct, frozen=True, kw_only=True):
    """URL and credentials of a server, written to the pipe of READY_FD_VARIABLE when it serves.

    One line of JSON. The pipe closes without it if the server does not start.
    """

    url: str
    token: str
    kubeconfig: bytes

    def __repr__(self) -> str:
        return f"EmbeddedServerAccess({self.url!r}, …)"


class NodeTrust(msgspec.Struct, frozen=True, kw_only=True):
    """How the API server reaches the agent, for logs and exec."""

    authority: Path
    """CA certificate of the agent's serving certificate; a self-signed one is its own CA."""
    address: str
    """The address that the agent listens on."""


class EmbeddedApiServer:
    """The child process; `run` restarts it, leaving `async with` stops it."""

    def __init__(
        self,
        folder: Path,
        log: Path,
        *,
        port: int,
        clock: Clock,
        node_trust: NodeTrust,
        command: Sequence[str] = APISERVER_COMMAND,
        backoff: Backoff = _BACKOFF,
    ) -> None:
        self._folder = folder
        self._log = log
        self._port = port
        self._clock = clock
        self._command = command
        self._node_trust = node_trust
        self._backoff = backoff
        self._process: Process | None = None
        self._closed = False
        self._cluster_id = ""
        """ID of the cluster that the first child served; later ones must serve the same."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        await self.stop()

    @property
    def pid(self) -> int | None:
        """Process ID of the child; None if it is not running."""
        return self._process.pid if self._process else None

    async def start(self) -> EmbeddedServerAccess:
        """Start the child and wait until it serves. Raises ApiServerStartError."""
        await self._wait_for_lock()
        try:
            return await self._start()
        except (OSError, msgspec.MsgspecError) as error:
            # For example: disk full, or out of memory.
            await self.stop()
            raise ApiServerStartError(
                f"the API server did not start: {type(error).__name__}: {error}"
            ) from error

    async def _start(self) -> EmbeddedServerAccess:
        options = ["--root-dir", str(self._folder), "--port", str(self._port), "--stop-at-eof"]
        options += ["--node-certificate-authority", str(self._node_trust.authority)]
        options += ["--node-address", self._node_trust.address]
        if self._cluster_id:
            options += ["--cluster-id", self._cluster_id]
        with _open_log(self._log) as log:
            begin = log.tell()
            message = await _read_message(await self._spawn(options, log))
        if not message:
            await self.stop()
            raise ApiServerStartError(self._start_error(begin))
        access = decode_json(message, EmbeddedServerAccess)
        self._port = urlsplit(access.url).port or 0
        self._cluster_id = self._cluster_id or self._read_cluster_id()
        return access

    async def _spawn(self, options: Sequence[str], log: BinaryIO) -> BinaryIO:
        """Start the child; return the pipe on which it reports that it serves."""
        own_end, child_end = os.pipe()
        pipe = os.fdopen(own_end, "rb")
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                *options,
                stdin=PIPE,
                stdout=log,
                stderr=log,
                env=child_environment(os.environ) | {READY_FD_VARIABLE: str(child_end)},
                pass_fds=(child_end,),
                # Ctrl-C must not reach the child: the agent sends its last statuses to it.
                start_new_session=True,
            )
        except BaseException:
            pipe.close()
            raise
        finally:
            os.close(child_end)
        return pipe

    async def run(self) -> None:
        """Restart the child whenever it exits, until cancelled or closed."""
        backoff = self._backoff
        while True:
            started = self._clock.monotonic()
            code = await self._process.wait() if self._process else None
            if self._closed:
                return
            uptime = (self._clock.monotonic() - started) / 1e9
            backoff = backoff.failed_after(uptime, reset_after=_BACKOFF_RESET_SECONDS)
            seconds = backoff.delay(random.random())  # noqa: S311 - not a secret
            logger.warning("API server exited, restarting it: code=%s wait=%.1fs", code, seconds)
            await self._clock.wait(seconds)
            try:
                files = await self.start()
            except ApiServerStartError as error:
                logger.warning("cannot restart the API server, will retry: error=%s", error)
            else:
                logger.info("API server restarted: url=%s", files.url)

    async def stop(self) -> None:
        """Terminate the child; kill it after the stop timeout."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_SECONDS):
                await process.wait()
        except TimeoutError:
            logger.warning("API server did not stop in time, killed it: pid=%s", process.pid)
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _wait_for_lock(self) -> None:
        """Wait until the server of an agent that was just killed has released the lock."""
        for _ in range(_LOCK_POLLS):
            try:
                if lock_holder(self._folder) is None:
                    return
            except StateDirError:
                return  # the child fails with a better message
            await self._clock.wait(_LOCK_POLL_SECONDS)

    def _read_cluster_id(self) -> str:
        with suppress(StorageError):
            marker, _ = MarkerFile(self._folder / DATABASE).read()
            return "" if marker is None else marker.cluster
        return ""

    def _start_error(self, begin: int) -> str:
        with self._log.open("rb") as log:
            log.seek(begin)
            lines = log.read(_MAX_LOG_BYTES).decode(errors="replace").split("\n")
        output = "\n".join(line for line in lines if line.strip())
        last = "\n".join(output.splitlines()[-_MAX_ERROR_LINES:]).removeprefix("podstatus: ")
        last = last.replace("--port", "--apiserver-port")  # the agent's name of that flag
        return f"the API server did not start: {last or 'no output'} (see {self._log})"


async def _read_message(pipe: BinaryIO) -> bytes:
    """Return the line of the child; empty if it exits before, or exceeds the start timeout."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    try:
        async with asyncio.timeout(_START_TIMEOUT_SECONDS):
            return await reader.readuntil()
    except (TimeoutError, asyncio.IncompleteReadError):
        return b""
    finally:
        transport.close()


def _open_log(path: Path) -> BinaryIO:
    """Open the log for appending; rotate it first if it is too large."""
    with suppress(OSError):
        if path.stat().st_size > _MAX_LOG_BYTES:
            path.replace(path.with_name(f"{path.name}.1"))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    log = os.fdopen(descriptor, "ab", buffering=0)
    log.seek(0, os.SEEK_END)
    return log


async def run_log_rotation(path: Path, clock: Clock, max_bytes: int = _MAX_LOG_BYTES) -> None:
    """Rotate the log of a running child whenever it exceeds `max_bytes`, until cancelled.

    As logrotate's `copytruncate` does: the child has the file open with O_APPEND, so truncation
    frees the space at once and the child continues at the new end. Lines written between copy and
    truncation are lost.
    """
    while True:
        await clock.wait(_ROTATION_CHECK_SECONDS)
        await asyncio.to_thread(rotate_log, path, max_bytes)


def rotate_log(path: Path, max_bytes: int) -> bool:
    """Move the last `max_bytes` of an oversized log to `….1`; return True if it was rotated.

    If the copy fails, for example on a full disk, the log is truncated without it.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        size = os.fstat(descriptor).st_size
        if size <= max_bytes:
            return False
        try:
            _copy(descriptor, size - max_bytes, path.with_name(f"{path.name}.1"))
        except OSError as error:
            logger.warning(
                "cannot copy the log before truncating it: path=%s error=%s", path, error
            )
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
    return True


def _copy(descriptor: int, offset: int, target: Path) -> None:
    """Copy everything from `offset` on. Raises OSError; `target` is unchanged then."""
    temporary = target.with_name(f"{target.name}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as copy:
            while chunk := os.pread(descriptor, _COPY_BYTES, offset):
                copy.write(chunk)
                offset += len(chunk)
        temporary.replace(target)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
