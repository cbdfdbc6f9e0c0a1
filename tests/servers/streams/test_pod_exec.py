"""Talking to processes by way of the API server: WebSockets, passed through to the node."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from tests.servers.pods import pods
from tests.servers.streams.node_scene import NodeScene
from tests.support.processes.stand_in_node import (
    CLOSE,
    ERROR,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    V5,
    wait_until,
)
from tests.support.web.aiohttp_transport import transport_of

pytestmark = pytest.mark.usefixtures("key")

Said = list[tuple[int, bytes]]


@pytest.fixture
def key(scene: NodeScene) -> str:
    return scene.add_pod()


async def said(socket: aiohttp.ClientWebSocketResponse) -> Said:
    """All that comes until the end: channel and data."""
    return [(message.data[0], message.data[1:]) async for message in socket]


def words(heard: Said, channel: int) -> bytes:
    return b"".join(data for number, data in heard if number == channel)


def status(heard: Said) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(words(heard, ERROR))
    return found


async def test_a_command_runs_and_says_how_it_ended(scene: NodeScene) -> None:
    async with scene.socket(["echo", "hello"], stdout="true") as socket:
        assert socket.protocol == V5
        heard = await said(socket)
        assert words(heard, STDOUT) == b"hello\n"
        assert status(heard)["status"] == "Success"
        assert socket.close_code == 1000


async def test_the_node_is_asked_in_its_own_words(scene: NodeScene, key: str) -> None:
    command = ["echo", "a b", "$(c) 'd' \"e\"\n", "", "ü&x=1"]
    flags = {"stdin": "true", "stdout": "1", "stderr": "", "tty": "false"}
    async with scene.socket(command, container="main", **flags) as socket:
        heard = words(await said(socket), STDOUT)
    assert heard.decode() == " ".join(command[1:]) + "\n"
    [asked] = scene.node.asked
    assert (asked.method, asked.path) == ("GET", f"/exec/{key}")
    assert [value for name, value in asked.query if name == "command"] == command
    flags = {name: value for name, value in asked.query if name != "command"}
    assert flags == {"input": "1", "output": "1", "error": "1"}
    assert asked.headers["Sec-WebSocket-Protocol"] == V5
    assert asked.user == "podstatus-apiserver"
    assert "Authorization" not in asked.headers


@pytest.mark.parametrize("code", [1, 7, 137])
async def test_an_exit_code_comes_back(scene: NodeScene, code: int) -> None:
    async with scene.socket(["exit", str(code)], stdout="true") as socket:
        heard = await said(socket)
    told = status(heard)
    assert told["reason"] == "NonZeroExitCode"
    assert told["details"]["causes"] == [{"reason": "ExitCode", "message": str(code)}]


async def test_channels_are_told_apart(scene: NodeScene) -> None:
    async with scene.socket(["complain", "no"], stdout="true", stderr="true") as socket:
        heard = await said(socket)
    assert (words(heard, STDOUT), words(heard, STDERR)) == (b"", b"no\n")


async def test_input_arrives_and_its_end(scene: NodeScene) -> None:
    async with scene.socket(["cat"], stdin="true", stdout="true") as socket:
        for piece in (b"one ", b"\x00\xff", b"x" * 100_000):
            await socket.send_bytes(bytes([STDIN]) + piece)
        await socket.send_bytes(bytes([CLOSE, STDIN]))
        heard = await said(socket)
    assert words(heard, STDOUT) == b"one \x00\xff" + b"x" * 100_000
    assert status(heard)["status"] == "Success"


async def test_the_size_of_the_terminal_arrives(scene: NodeScene) -> None:
    async with scene.socket(["size"], stdin="true", stdout="true", tty="true") as socket:
        size = json.dumps({"Width": 132, "Height": 43}).encode()
        await socket.send_bytes(bytes([RESIZE]) + size)
        heard = await said(socket)
    assert words(heard, STDOUT) == b"132x43\n"
    assert ("tty", "1") in scene.node.asked[0].query


async def test_a_lot_of_output_arrives_whole(scene: NodeScene) -> None:
    async with scene.socket(["flood", "500"], stdout="true") as socket:
        heard = len(words(await said(socket), STDOUT))
    assert heard == 500 * 32768


async def test_attach_talks_to_the_container_itself(scene: NodeScene, key: str) -> None:
    async with scene.socket([], verb="attach", stdout="true") as socket:
        heard = await said(socket)
    assert words(heard, STDOUT) == b"attached\n"
    assert scene.node.asked[0].path == f"/attach/{key}"


async def test_a_client_that_leaves_is_a_hang_up(scene: NodeScene) -> None:
    async with scene.socket(["wait"], stdin="true") as socket:
        await asyncio.to_thread(wait_until, lambda: scene.node.open_streams == 1)
        await socket.close()
    await asyncio.to_thread(wait_until, lambda: scene.node.open_streams == 0)


async def test_a_client_that_vanishes_is_a_hang_up(scene: NodeScene) -> None:
    async with scene.socket(["wait"], stdin="true") as socket:
        await asyncio.to_thread(wait_until, lambda: scene.node.open_streams == 1)
        transport_of(socket).abort()
    await asyncio.to_thread(wait_until, lambda: scene.node.open_streams == 0)


async def test_a_node_that_vanishes_is_no_good_end(scene: NodeScene) -> None:
    async with scene.socket(["vanish"], stdout="true") as socket:
        heard, code = [(m.data[0], m.data) async for m in socket], socket.close_code
    assert not heard
    assert code != 1000


@pytest.mark.parametrize("verb", ["exec", "attach"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_an_upgrade_there_is_nothing_to_say(
    scene: NodeScene, verb: str, method: str
) -> None:
    path = f"{pods(scene.namespace, 'web', verb)}?command=ls"
    code, told = scene.server.client.ask(method, path)
    assert (code, told["message"]) == (400, "Upgrade request required")


@pytest.mark.parametrize(
    ("pod", "query", "code", "message"),
    [
        ("nobody", "command=x", 404, 'pods "nobody" not found'),
        ("web", "command=x&container=b", 400, "container b is not valid for pod web"),
        ("waits", "command=x", 400, "pod waits does not have a host assigned"),
        ("lost", "command=x", 404, 'pods "no-such-node" not found'),
        (
            "two",
            "command=x",
            400,
            "a container name must be specified for pod two, choose one of: [a b]",
        ),
    ],
)
def test_what_cannot_be_talked_to_is_told_before_the_upgrade(
    scene: NodeScene, pod: str, query: str, code: int, message: str
) -> None:
    scene.add_pod("waits", node="")
    scene.add_pod("lost", node="no-such-node")
    scene.add_pod("two", containers=("a", "b"))
    found, told = scene.server.client.get(f"{pods(scene.namespace, pod, 'exec')}?{query}")
    assert (found, told["message"]) == (code, message)


def test_other_methods_are_not_for_processes(scene: NodeScene) -> None:
    code, _ = scene.server.client.ask("PUT", pods(scene.namespace, "web", "exec"), {})
    assert code == 405


async def test_a_node_that_does_not_declare_websockets_is_asked_otherwise_by_a_real_server(
    scene: NodeScene,
) -> None:
    scene.add_pod("old", node=scene.add_node(scene.node.port, features=()))
    async with scene.socket(["echo", "hi"], pod="old", stdout="true") as socket:
        heard = await said(socket)
    if scene.server.is_real:
        assert "this node speaks WebSocket only" in status(heard)["message"]
        assert scene.node.asked[0].headers["Upgrade"] == "SPDY/3.1"
    else:
        # By decision: all who serve the embedded server speak WebSocket.
        assert words(heard, STDOUT) == b"hi\n"
