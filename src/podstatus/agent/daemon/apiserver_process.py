"""Our own API server as a child process: started, kept alive, ended with us.

The child ends by itself when its standard input does, so it never outlives the agent, not even
one that was killed. Its port stays the same when it is started again.
"""

import asyncio
import logging
import os
import random
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self
from urllib.parse import urlsplit

import msgspec

from podstatus.agent.daemon.log_rotation import MAX_LOG_BYTES, run_log_rotation
from podstatus.apiserver.pki.credentials import ENDPOINTS, KUBECONFIG
from podstatus.apiserver.state_dir import StateDirError, lock_holder
from podstatus.apiserver.storage.marker import MarkerError, MarkerFile
from podstatus.apiserver.storage.sqlite_file import DATABASE
from podstatus.base.aio import SystemClock
from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.base.msgspec_json import decode_json
from podstatus.base.programs import child_environment, python_module_command

logger = logging.getLogger(__name__)

APISERVER_COMMAND = (*python_module_command("podstatus.cli"), "apiserver")
_START_TIMEOUT_SECONDS = 30.0
"""It takes one; a machine under load gets more."""
_STOP_TIMEOUT_SECONDS = 1.0
"""Then it is killed: the whole agent ends within 5."""
_BACKOFF_RESET_SECONDS = 60.0
"""Who has served for so long counts as well again."""
_LOCK_POLLS, _LOCK_POLL_SECONDS = 50, 0.1
_MAX_ERROR_LINES = 5


class ApiServerStartError(Exception):
    """The child did not come up; the message has what it said."""


class EmbeddedServerAccess(msgspec.Struct, frozen=True):
    """How to reach the server."""

    url: str
    token: str
    kubeconfig: bytes

    def __repr__(self) -> str:
        return f"ServerFiles({self.url!r}, …)"


class NodeTrust(msgspec.Struct, frozen=True, kw_only=True):
    """How the child reaches the agent, for logs and exec."""

    authority: Path
    """Who has signed the agent's certificate; it may be that certificate itself."""
    address: str
    """Where the agent listens."""


class EmbeddedApiServer:
    """The child, within `async with`; `run` keeps it alive."""

    def __init__(
        self,
        folder: Path,
        log: Path,
        *,
        port: int,
        clock: Clock | None = None,
        node_trust: NodeTrust | None = None,
        command: Sequence[str] = APISERVER_COMMAND,
        backoff: Backoff | None = None,
    ) -> None:
        self._folder = folder
        self._log = log
        self._port = port
        self._clock = clock or SystemClock()
        self._command = command
        self._node_trust = node_trust
        self._backoff = backoff or Backoff(initial_seconds=0.2, max_seconds=10.0)
        self._process: Process | None = None
        self._closed = False
        self._cluster_id = ""
        """The cluster it serves: once it has served one, another is refused."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed = True
        await self.stop()

    @property
    def pid(self) -> int | None:
        """The child's, while there is one."""
        return self._process.pid if self._process else None

    async def start(self) -> EmbeddedServerAccess:
        """Start it and wait until it serves. Raises CannotStartApiServerError."""
        await self._wait_for_lock()
        try:
            return await self._start()
        except (OSError, msgspec.MsgspecError, KeyError) as error:
            # A disk that is full, say, or no memory for one process more.
            await self.stop()
            raise ApiServerStartError(
                f"the API server did not start: {type(error).__name__}: {error}"
            ) from error

    async def _start(self) -> EmbeddedServerAccess:
        options = ["--root-dir", str(self._folder), "--port", str(self._port), "--stop-at-eof"]
        if self._cluster_id:
            options += ["--cluster-id", self._cluster_id]
        if self._node_trust is not None:
            options += ["--node-certificate-authority", str(self._node_trust.authority)]
            options += ["--node-address", self._node_trust.address]
        with _open_log(self._log) as log:
            begin = log.tell()
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                *options,
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                env=child_environment(os.environ),
                # A Ctrl-C is for the agent, which has a last word to say to the server.
                start_new_session=True,
            )
            serves = await self._wait_ready(self._process, log)
        if not serves:
            await self.stop()
            raise ApiServerStartError(self._start_error(begin))
        files = self._read_access()
        self._port = urlsplit(files.url).port or 0
        self._cluster_id = self._cluster_id or self._read_cluster_id()
        return files

    async def run(self) -> None:
        """Start it again whenever it ends; until cancelled, or left."""
        backoff = self._backoff
        while True:
            started = self._clock.monotonic()
            code = await self._process.wait() if self._process else None
            if self._closed:
                return
            if self._clock.monotonic() - started > _BACKOFF_RESET_SECONDS * 1e9:
                backoff = backoff.reset()
            backoff = backoff.failed()
            seconds = backoff.delay(random.random())  # noqa: S311 - not a secret
            logger.warning("API server ended, starting it again: code=%s wait=%.1fs", code, seconds)
            await self._clock.wait(seconds)
            try:
                files = await self.start()
            except ApiServerStartError as error:
                logger.warning("API server cannot be started, trying again: error=%s", error)
            else:
                logger.info("API server serves again: url=%s", files.url)

    async def run_log_rotation(self) -> None:
        """Rotate its log while it runs; until cancelled."""
        await run_log_rotation(self._log, self._clock)

    async def stop(self) -> None:
        """End it, by force if it takes too long."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_SECONDS):
                await process.wait()
        except TimeoutError:
            logger.warning("API server killed, it did not end: pid=%s", process.pid)
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _wait_for_lock(self) -> None:
        """Wait for the server of an agent that was killed just now: it is about to end."""
        for _ in range(_LOCK_POLLS):
            try:
                if lock_holder(self._folder) is None:
                    return
            except StateDirError:
                return  # it will say so itself, in better words
            await self._clock.wait(_LOCK_POLL_SECONDS)

    async def _wait_ready(self, process: Process, log: BinaryIO) -> bool:
        """Whether it came so far as to say how to use it."""
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        with suppress(TimeoutError):
            async with asyncio.timeout(_START_TIMEOUT_SECONDS):
                while line := await process.stdout.readline():
                    log.write(line)
                    if b"kubectl" in line:
                        return True
        return False

    def _read_access(self) -> EmbeddedServerAccess:
        told = decode_json((self._folder / ENDPOINTS).read_bytes(), dict[str, str])
        kubeconfig = (self._folder / KUBECONFIG).read_bytes()
        return EmbeddedServerAccess(told["apiserver"], told["token"], kubeconfig)

    def _read_cluster_id(self) -> str:
        with suppress(MarkerError):
            marker, _ = MarkerFile(self._folder / DATABASE).read()
            return "" if marker is None else marker.cluster
        return ""

    def _start_error(self, begin: int) -> str:
        with self._log.open("rb") as log:
            log.seek(begin)
            lines = log.read(MAX_LOG_BYTES).decode(errors="replace").split("\n")
        said = "\n".join(line for line in lines if line.strip())
        last = "\n".join(said.splitlines()[-_MAX_ERROR_LINES:]).removeprefix("podstatus: ")
        last = last.replace("--port", "--apiserver-port")  # its flag, in the words of ours
        return f"the API server did not start: {last or 'it said nothing'} (see {self._log})"


def _open_log(path: Path) -> BinaryIO:
    """The log, to be continued; a long one is put aside."""
    with suppress(OSError):
        if path.stat().st_size > MAX_LOG_BYTES:
            path.replace(path.with_name(f"{path.name}.1"))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    log = os.fdopen(descriptor, "ab", buffering=0)
    log.seek(0, os.SEEK_END)
    return log
