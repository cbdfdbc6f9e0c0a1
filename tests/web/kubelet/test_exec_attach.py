"""Exec and attach over a WebSocket: all channels, results, and misbehaving clients."""

import asyncio
import fcntl
import json
import sys
import termios
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import WSMsgType

from podstatus.base.net.sockets import transport_socket
from podstatus.runtime.streams import StreamOptions, StreamUnavailableError, TerminalSize
from podstatus.testing.clock import FakeClock, run_ready_tasks
from podstatus.web.kubelet import idle_timeout
from tests.support.web.aiohttp_transport import transport_of
from tests.support.web.node_server import Scene, app_pod, serve, until

EXEC = "/exec/ns/p/app"
SUCCESS = {"metadata": {}, "status": "Success"}


async def everything(socket: aiohttp.ClientWebSocketResponse) -> list[bytes]:
    """All messages until the connection is closed."""
    return [message.data async for message in socket]


def channel_data(messages: list[bytes], channel: int) -> bytes:
    return b"".join(message[1:] for message in messages if message[0] == channel)


def outcome(messages: list[bytes]) -> Any:
    return json.loads(channel_data(messages, 3))


async def talk(scene: Scene, query: str, *sent: bytes, **wanted: Any) -> list[Any]:
    """The messages of a command with some stdin."""
    async with scene.websocket(f"{EXEC}?{query}", **wanted) as socket:
        for message in sent:
            await socket.send_bytes(message)
        messages = await everything(socket)
        assert socket.close_code == 1000
    await until(lambda: all(talk.closed.is_set() for talk in scene.runtime.talks))
    return messages


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", "v5.channel.k8s.io"])
async def test_output_arrives_and_then_how_it_ended(
    scene: Scene, method: str, protocol: str
) -> None:
    query = "command=both&input=1&output=1&error=1"
    messages = await talk(scene, query, method=method, protocols=(protocol,))
    assert messages[0] == b"\x01"
    assert (channel_data(messages, 1), channel_data(messages, 2)) == (b"out", b"err")
    assert outcome(messages) == SUCCESS


@pytest.mark.parametrize("protocols", [("channel.k8s.io",), ()], ids=["v1", "none"])
@pytest.mark.parametrize(
    ("command", "messages"),
    [
        ("both", [b"\x01", b"\x01out", b"\x02err"]),
        (
            "exit&command=7",
            [b"\x01", b"\x03command terminated with non-zero exit code: exit status 7"],
        ),
    ],
)
async def test_before_v4_only_the_text_of_an_error_ends_the_session(
    scene: Scene, protocols: tuple[str, ...], command: str, messages: list[bytes]
) -> None:
    received = await talk(scene, f"command={command}&output=1&error=1", protocols=protocols)
    assert received == messages
    scene.runtime.problem = StreamUnavailableError("it has just ended")
    _, error = await talk(scene, "command=ls&output=1", protocols=protocols)
    reason = b"error executing command in container: it has just ended"
    assert error == b"\x03Internal error occurred: " + reason


@pytest.mark.parametrize(
    ("protocol", "end"),
    [
        ("v4.base64.channel.k8s.io", ["3eyJtZXRhZGF0YSI6e30sInN0YXR1cyI6IlN1Y2Nlc3MifQ=="]),
        ("base64.channel.k8s.io", []),
    ],
)
async def test_base64_protocols_have_text_frames(
    scene: Scene, protocol: str, end: list[str]
) -> None:
    both = "command=both&output=1&error=1"
    assert await talk(scene, both, protocols=(protocol,)) == ["1", "1b3V0", "2ZXJy", *end]
    cat = f"{EXEC}?command=cat&input=1&output=1&tty=1"
    async with scene.websocket(cat, protocols=(protocol,)) as socket:
        # Not base64, and a channel that does not exist: ignored.
        for frame in ("0?", "9aGk=", "4eyJXaWR0aCI6ODAsIkhlaWdodCI6MjR9", "0aGVs\r\nbG8="):
            await socket.send_str(frame)
        assert [(await socket.receive()).data for _ in range(2)] == ["1", "1aGVsbG8="]
    assert scene.runtime.talks[-1].sizes == [TerminalSize(columns=80, rows=24)]


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (("v4.channel.k8s.io", "v5.channel.k8s.io"), "v4.channel.k8s.io"),
        (("soap", "base64.channel.k8s.io"), "base64.channel.k8s.io"),
        ((), None),
    ],
)
async def test_the_first_supported_protocol_of_the_client_is_used(
    scene: Scene, offered: tuple[str, ...], chosen: str | None
) -> None:
    path = f"{EXEC}?command=both&output=1"
    async with scene.websocket(path, protocols=offered) as socket:
        assert socket.protocol == chosen


@pytest.mark.parametrize(
    ("query", "out", "err"),
    [
        ("output=1", b"out", b""),
        ("stdout=true&stderr=true", b"out", b"err"),
        ("error=1", b"", b"err"),
        ("output=1&error=1&tty=1", b"out", b""),
    ],
)
async def test_only_what_was_asked_for_arrives(
    scene: Scene, query: str, out: bytes, err: bytes
) -> None:
    messages = await talk(scene, f"command=both&{query}")
    assert (channel_data(messages, 1), channel_data(messages, 2)) == (out, err)


async def test_an_exit_code_is_sent_as_a_status(scene: Scene) -> None:
    assert outcome(await talk(scene, "command=exit&command=7&output=1")) == {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": "command terminated with non-zero exit code: exit status 7",
        "details": {"causes": [{"reason": "ExitCode", "message": "7"}]},
    }


async def test_a_command_arrives_unchanged(scene: Scene) -> None:
    query = "command=echo&command=%22a%27+b%0A&command=$(id)&command=%FF%26&command=&output=1"
    messages = await talk(scene, query)
    assert channel_data(messages, 1) == b"\"a' b\n $(id) \xff& "


async def test_a_long_command_is_none_too_many(scene: Scene) -> None:
    text = "x" * 200_000
    messages = await talk(scene, f"command=echo&command={text}&output=1")
    assert channel_data(messages, 1) == text.encode()


async def test_stdin_and_its_end_are_relayed(scene: Scene) -> None:
    sent = [b"\x00" + bytes([n]) * 30_000 for n in range(20)]
    messages = await talk(scene, "command=cat&input=1&output=1", *sent, b"\xff\x00", b"\x00late")
    assert channel_data(messages, 1) == b"".join(message[1:] for message in sent)
    assert outcome(messages) == SUCCESS


async def test_input_that_was_not_announced_is_dropped(scene: Scene) -> None:
    messages = await talk(scene, "command=both&output=1", b"\x00no", b"\xff\x00", b"", b"\x09x")
    assert outcome(messages) == SUCCESS


async def test_the_terminal_is_resized(scene: Scene) -> None:
    async with scene.websocket(f"{EXEC}?command=cat&input=1&output=1&tty=1") as socket:
        for size in (
            b'{"Width":80,"Height":24}',
            b"{",
            b'{"Width":-1,"Height":1}',
            b'{"Width":99999,"Height":1}',
            b'{"Width":132,"Height":43}\n',
        ):
            await socket.send_bytes(b"\x04" + size)
        await until(lambda: len(scene.runtime.talks[0].sizes) == 2)
        assert scene.runtime.talks[0].request == StreamOptions(
            stdin=True, stdout=True, stderr=False, tty=True
        )
        assert scene.runtime.talks[0].sizes == [
            TerminalSize(columns=80, rows=24),
            TerminalSize(columns=132, rows=43),
        ]


@pytest.mark.parametrize("sent", [b"\xff", b"\xff\x09", b"\xff\x00\x00"])
async def test_a_wrong_close_ends_the_talk(scene: Scene, sent: bytes) -> None:
    async with scene.websocket(f"{EXEC}?command=sleep&output=1") as socket:
        await socket.send_bytes(sent)
        await everything(socket)
    await scene.runtime.talks[0].closed.wait()
    assert socket.close_code == 1002


async def test_a_client_that_hangs_up_ends_the_command(scene: Scene) -> None:
    async with scene.websocket(f"{EXEC}?command=sleep&output=1") as socket:
        await socket.receive()
    await scene.runtime.talks[0].closed.wait()
    await until(lambda: scene.answers.streams == 0)


@pytest.mark.parametrize("command", ["sleep", "flood"])
async def test_a_client_that_vanishes_ends_the_command(scene: Scene, command: str) -> None:
    async with scene.websocket(f"{EXEC}?command={command}&input=1&output=1") as socket:
        await socket.receive()
        transport_of(socket).abort()
    await scene.runtime.talks[0].closed.wait()


async def test_a_client_that_vanishes_while_its_input_is_not_taken_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transports: list[asyncio.BaseTransport] = []
    monkeypatch.setattr(idle_timeout, "enable_keepalive", transports.append)
    clock = FakeClock()
    async with serve(tmp_path, clock=clock) as scene:
        async with scene.websocket(f"{EXEC}?command=sleep&input=1&output=1") as socket:
            while not await _is_unread(transports[0]):
                await socket.send_bytes(b"\x00" + b"x" * 16384)
            transport_of(socket).abort()
        assert not scene.runtime.talks[0].closed.is_set()
        await clock.advance(5)
        await scene.runtime.talks[0].closed.wait()


async def _is_unread(transport: asyncio.BaseTransport) -> bool:
    """Whether the server leaves what the client sends in the buffer of the kernel."""
    await run_ready_tasks()
    sock = transport_socket(transport)
    assert sock is not None
    unread = fcntl.ioctl(sock.fileno(), termios.FIONREAD, bytes(4))
    return int.from_bytes(unread, sys.byteorder) > 0


async def test_a_process_that_does_not_read_holds_up_its_client(scene: Scene) -> None:
    async with scene.websocket(f"{EXEC}?command=sleep&input=1&output=1") as socket:
        sending = asyncio.create_task(_send_for_ever(socket))
        await asyncio.wait([sending], timeout=0.5)
        assert not sending.done()
        assert scene.runtime.talks[0].written < 2**20
        assert await scene.get("/healthz") == (200, "ok")
        sending.cancel()
        await scene.server.stop()
    await scene.runtime.talks[0].closed.wait()


async def _send_for_ever(socket: aiohttp.ClientWebSocketResponse) -> None:
    while True:
        await socket.send_bytes(b"\x00" + b"x" * 65536)


async def test_a_client_that_does_not_read_blocks_only_its_command(scene: Scene) -> None:
    async with scene.websocket(f"{EXEC}?command=flood&output=1"):
        output = scene.runtime.talks[0].output
        await until(output.full)
        await asyncio.sleep(0.3)
        assert output.full()
        assert await scene.get("/healthz") == (200, "ok")
        await scene.server.stop()
    await scene.runtime.talks[0].closed.wait()


async def test_nothing_happens_for_too_long(tmp_path: Path) -> None:
    clock = FakeClock()
    async with serve(tmp_path, clock=clock, idle_timeout_seconds=60.0) as scene:
        async with scene.websocket(f"{EXEC}?command=cat&input=1&output=1") as socket:
            await socket.receive()
            await clock.advance(50)
            await socket.send_bytes(b"\x00a")
            await socket.receive()
            await clock.advance(50)
            assert not scene.runtime.talks[0].closed.is_set()
            await clock.advance(15)
            await everything(socket)
        assert scene.runtime.talks[0].closed.is_set()


async def test_the_agent_stops(scene: Scene) -> None:
    async with scene.websocket(f"{EXEC}?command=sleep&output=1") as socket:
        await socket.receive()
        stopping = asyncio.create_task(scene.server.stop())
        messages = await everything(socket)
        await stopping
    assert scene.runtime.talks[0].closed.is_set()
    assert socket.close_code == 1000
    assert outcome(messages)["reason"] == "InternalError"
    assert outcome(messages)["message"] == (
        "Internal error occurred: error executing command in container: "
        "the agent of the node is stopping"
    )


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (StreamUnavailableError("it has just ended"), "it has just ended"),
        (ZeroDivisionError("oops"), "ZeroDivisionError: oops"),
    ],
)
async def test_a_command_that_cannot_run_says_why(
    scene: Scene, problem: Exception, why: str
) -> None:
    scene.runtime.problem = problem
    async with scene.websocket(f"{EXEC}?command=ls&output=1") as socket:
        status = outcome(await everything(socket))
    message = f"error executing command in container: {why}"
    assert status["message"] == f"Internal error occurred: {message}"
    assert (status["status"], status["reason"], status["code"]) == ("Failure", "InternalError", 500)
    assert status["details"] == {"causes": [{"message": message}]}


async def test_attach_talks_to_the_container_and_tells_no_exit_code(tmp_path: Path) -> None:
    pod = app_pod()
    (container,) = pod.spec.containers or ()
    terminal = msgspec.structs.replace(container, tty=True)
    spec = msgspec.structs.replace(pod.spec, containers=(terminal,))
    async with serve(tmp_path, msgspec.structs.replace(pod, spec=spec)) as scene:
        path = "/attach/ns/p/uid-p/app?input=1&output=1&error=1"
        async with scene.websocket(path) as socket:
            await socket.send_bytes(b"\x00hello")
            await socket.send_bytes(b"\xff\x00")
            messages = await everything(socket)
        assert scene.runtime.attached == ["fake://app"]
        assert scene.runtime.talks[0].request.tty
        assert not scene.runtime.talks[0].request.stderr
    assert channel_data(messages, 1) == b"hello"
    assert outcome(messages) == SUCCESS


SPDY = {"Upgrade": "SPDY/3.1", "Connection": "Upgrade"}
WEBSOCKET = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.mark.parametrize(
    ("path", "headers", "code", "text"),
    [
        (f"{EXEC}?command=ls&output=1", SPDY, 400, "this node supports WebSocket, not SPDY"),
        (f"{EXEC}?command=ls&output=1", {}, 400, "Upgrade request required"),
        (
            f"{EXEC}?command=ls&output=1",
            {**WEBSOCKET, "Sec-WebSocket-Protocol": "soap, v9"},
            400,
            (
                "requested protocol(s) are not supported: [soap, v9]; supports [v5.channel.k8s.io "
                "v4.channel.k8s.io v4.base64.channel.k8s.io channel.k8s.io base64.channel.k8s.io]"
            ),
        ),
        (f"{EXEC}?command=ls", SPDY, 400, "you must specify at least 1 of stdin, stdout, stderr"),
        (f"{EXEC}?output=1", SPDY, 400, "you must specify the command to run"),
        (f"{EXEC}?command=a%00b&output=1", SPDY, 400, "a command cannot contain a null byte"),
        ("/exec/ns/q/app?command=ls&output=1", SPDY, 404, "pod does not exist"),
        ("/exec/ns/p/b?command=ls&output=1", SPDY, 500, 'container not found ("b")'),
        ("/attach/ns/p/b?output=1", SPDY, 500, 'container not found ("b")'),
    ],
)
async def test_other_errors_come_before_those_of_the_protocol(
    scene: Scene, path: str, headers: dict[str, str], code: int, text: str
) -> None:
    async with scene.client() as session, session.post(path, headers=headers) as answer:
        status, said = answer.status, await answer.text()
    assert status == code
    if headers is SPDY:
        assert ": " not in said, "kubectl would take it for YAML"
    assert said.startswith(text)


async def test_a_runtime_without_processes_says_so(tmp_path: Path) -> None:
    paths = (f"{EXEC}?command=ls&output=1", "/attach/ns/p/app?output=1")
    async with serve(tmp_path, sources={"runtime": object()}) as scene:
        answers = [await scene.get(path) for path in (*paths, "/containerLogs/ns/p/app")]
    assert [code for code, _ in answers] == [501, 501, 501]
    assert "cannot run commands in containers; docs/reference/runtime-port.md" in answers[0][1]


async def test_what_kubectl_sends_by_way_of_an_api_server(scene: Scene) -> None:
    """`kubectl exec -i p -- cat`, with text pings and channel 4."""
    path = f"{EXEC}?command=cat&error=1&input=1&output=1"
    async with scene.websocket(path) as socket:
        assert socket.protocol == "v5.channel.k8s.io"
        await socket.ping()
        await socket.send_bytes(b"\x00hello\n")
        await socket.send_bytes(b"\xff\x00")
        first = await socket.receive()
        assert (first.type, first.data) == (WSMsgType.BINARY, b"\x01")
        messages = await everything(socket)
    assert channel_data(messages, 1) == b"hello\n"
    assert outcome(messages) == SUCCESS
