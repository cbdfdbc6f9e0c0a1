"""Run a command in a container for `podstatus exec`, over a WebSocket to the agent.

Upstream: ExecOptions.Run, pkg/cmd/exec/exec.go, kubectl v0.36.4; NewWebSocketExecutor, client-go
v0.36.4. The channel protocol is that of `podstatus.web.kubelet.channel_protocol`.
"""

import asyncio
import os
import signal
import sys
import termios
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from podstatus.base.control_chars import ControlCharEscaper
from podstatus.base.msgspec_json import decode_json
from podstatus.cli.client.https_client import AgentClient, find_agent
from podstatus.cli.client.request_errors import RequestError
from podstatus.cli.print_logs import choose_container
from podstatus.cli.program import describe_pod_command
from podstatus.cli.terminal import write, write_encoded
from podstatus.kube.encoding.channel_frames import V4, V5, ChannelNumber
from podstatus.kube.objects.pod import Pod
from podstatus.kube.unstructured import nested_list, nested_str

_CHUNK_BYTES = 32 * 1024
_CONNECT_SECONDS = 10.0
_END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class ContainerCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command to run in a container of a pod."""

    namespace: str
    pod: str
    container: str | None
    """None: the container that kubectl chooses."""
    command: tuple[str, ...]
    stdin: bool
    tty: bool


def exec_command(root_dir: Path | None, request: ContainerCommand) -> int:
    """Run the command and return its exit code. Raises RequestError."""
    agent = find_agent(root_dir, os.environ)
    pod = agent.get_pod(request.namespace, request.pod)
    choice = choose_container(pod, request.container)
    for note in choice.notes:
        write(f"{note}\n", err=True)
    is_terminal = sys.stdin.isatty()
    if request.tty and not is_terminal:
        write("Unable to use a TTY - input is not a terminal\n", err=True)
    has_tty = request.tty and is_terminal
    query = [("command", word) for word in request.command]
    streams = {"output": True, "error": not has_tty, "input": request.stdin, "tty": has_tty}
    query += [(name, "1") for name, is_set in streams.items() if is_set]
    path = "/".join(quote(part, safe="") for part in (request.namespace, request.pod, choice.name))
    target = f"/exec/{path}?{urlencode(query, errors='surrogateescape')}"
    try:
        with _raw_terminal(is_raw=has_tty and request.stdin):
            return asyncio.run(_run(agent, target, stdin=request.stdin, has_tty=has_tty))
    except RequestError as error:
        if not (reason := _why_not_running(request, pod, choice.name)):
            raise
        raise RequestError(f"{error}: {reason}") from error


def _why_not_running(request: ContainerCommand, pod: Pod, container: str) -> str:
    """Describe the state of a container that does not run; empty if it does, or is unknown."""
    status = pod.status
    statuses = (
        *(status.container_statuses or ()),
        *(status.init_container_statuses or ()),
        *(status.ephemeral_container_statuses or ()),
    )
    state = next((it.state for it in statuses if it.name == container), None)
    if state is not None and (ended := state.terminated) is not None:
        reason = f"{ended.reason}, " if ended.reason else ""
        return f"it has terminated ({reason}exit code {ended.exit_code})"
    if state is not None and (waiting := state.waiting) is not None:
        reason = f" ({waiting.reason})" if waiting.reason else ""
        describe = describe_pod_command(request.namespace, request.pod)
        return f"it is waiting{reason}; to see why: {describe}"
    return ""


@contextmanager
def _raw_terminal(*, is_raw: bool) -> Iterator[None]:
    """Pass every key to the command, Ctrl-C included; restore the terminal at the end."""
    if not is_raw:
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal is closed
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


async def _run(agent: AgentClient, target: str, *, stdin: bool, has_tty: bool) -> int:
    connecting = aiohttp.ClientTimeout(sock_connect=_CONNECT_SECONDS)
    async with aiohttp.ClientSession(timeout=connecting) as http:
        try:
            socket = await http.ws_connect(
                f"{agent.url}{target}",
                protocols=(V5, V4),
                headers=agent.headers(),
                ssl=agent.tls_context(),
            )
        except aiohttp.WSServerHandshakeError as error:
            # The body has the reason. A request without a WebSocket runs nothing.
            await asyncio.to_thread(lambda: b"".join(agent.request(target, {})))
            raise RequestError(f"the agent refused the command: {error.message}") from error
        except aiohttp.ClientError as error:
            raise RequestError(f"request to the agent at {agent.url} failed: {error}") from error
        async with socket:
            return await _Session(socket, has_tty=has_tty).run(stdin=stdin)


class _Session:
    """The streams of one command over one WebSocket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, *, has_tty: bool) -> None:
        self._socket = socket
        self._has_tty = has_tty
        self._outputs = {
            ChannelNumber.STDOUT: _Output(sys.stdout, is_raw=has_tty),
            ChannelNumber.STDERR: _Output(sys.stderr, is_raw=has_tty),
        }

    async def run(self, *, stdin: bool) -> int:
        """Relay the streams until the command ends, and return its exit code."""
        with _cancel_on_signals():
            tasks = [asyncio.create_task(self._relay_stdin())] if stdin else []
            if self._has_tty:
                tasks.append(asyncio.create_task(self._relay_size()))
            try:
                return await self._receive()
            finally:
                for task in tasks:
                    task.cancel()
                for output in self._outputs.values():
                    output.close()

    async def _receive(self) -> int:
        async for frame in self._socket:
            if frame.type is not aiohttp.WSMsgType.BINARY or not frame.data:
                continue
            number, data = frame.data[0], frame.data[1:]
            if number == ChannelNumber.ERROR and data:
                return _exit_code(data)
            if number in self._outputs:
                self._outputs[ChannelNumber(number)].write(data)
        raise RequestError("the connection to the agent ended before the command; it may run on")

    async def _relay_stdin(self) -> None:
        chunks: asyncio.Queue[bytes] = asyncio.Queue(1)
        loop = asyncio.get_running_loop()

        def read() -> None:
            chunk = b"?"
            # After the end of the loop, what is read is lost.
            with suppress(RuntimeError):
                while chunk:
                    chunk = _read_stdin()
                    asyncio.run_coroutine_threadsafe(chunks.put(chunk), loop).result()

        threading.Thread(target=read, daemon=True).start()
        with suppress(ConnectionError):  # the command has ended
            while chunk := await chunks.get():
                await self._socket.send_bytes(bytes([ChannelNumber.STDIN]) + chunk)
            if self._socket.protocol == V5:  # v4 cannot signal the end of stdin
                await self._socket.send_bytes(bytes([ChannelNumber.CLOSE, ChannelNumber.STDIN]))

    async def _relay_size(self) -> None:
        """Send the size of the terminal, now and after every change."""
        changed = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGWINCH, changed.set)
        with suppress(ConnectionError):
            while True:
                size = os.get_terminal_size(sys.stdin.fileno())
                text = msgspec.json.encode({"Width": size.columns, "Height": size.lines})
                await self._socket.send_bytes(bytes([ChannelNumber.RESIZE]) + text)
                await changed.wait()
                changed.clear()


def _read_stdin() -> bytes:
    try:
        return os.read(sys.stdin.fileno(), _CHUNK_BYTES)
    except OSError:  # the terminal is closed
        return b""


class _Output:
    """Writes a stream; on a terminal, control characters are escaped unless the command has it."""

    def __init__(self, stream: TextIO, *, is_raw: bool) -> None:
        self._stream = stream
        self._escaper = None if is_raw or not stream.isatty() else ControlCharEscaper()

    def write(self, data: bytes) -> None:
        if self._escaper is not None:
            write_encoded(self._stream, self._escaper.feed(data))
            return
        self._stream.buffer.write(data)
        self._stream.flush()

    def close(self) -> None:
        if self._escaper is not None:
            write_encoded(self._stream, self._escaper.flush())


@contextmanager
def _cancel_on_signals() -> Iterator[None]:
    """End the session on a signal that would leave the terminal in raw mode."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    received: list[int] = []

    def cancel(number: int) -> None:
        received.append(number)
        if task is not None:
            task.cancel()

    for number in _END_SIGNALS:
        loop.add_signal_handler(number, cancel, number)
    try:
        yield
    except asyncio.CancelledError:
        if not received:  # Ctrl-C without a TTY
            raise
        raise RequestError(f"ended by {signal.Signals(received[0]).name}") from None


def _exit_code(status: bytes) -> int:
    """Return the exit code of the final status. Raises RequestError if the command did not run."""
    try:
        document: dict[str, Any] = decode_json(status, dict[str, Any])
    except msgspec.DecodeError as error:
        raise RequestError(f"cannot decode the response of the agent: {error}") from error
    if nested_str(document, "status") == "Success":
        return 0
    for cause in nested_list(document, "details", "causes"):
        if nested_str(cause, "reason") == "ExitCode":
            return int(nested_str(cause, "message"))
    raise RequestError(nested_str(document, "message") or "the agent did not run the command")
