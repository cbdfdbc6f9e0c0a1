"""Calls have deadlines, errors say what to do, and a restarted runtime is found again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from podstatus.runtime.cri.api.codec import CODEC
from podstatus.runtime.cri.api.containers import CriContainer, CriListContainersResponse
from podstatus.runtime.cri.api.status import CriVersionResponse
from podstatus.runtime.cri.client.channel import CriChannel, EndpointError, socket_address
from podstatus.runtime.cri.client.errors import CriCallError
from podstatus.runtime.cri.client.runtime_service import RuntimeService
from podstatus.runtime.port import RuntimeDownError
from tests.support.processes.fake_cri_server import FakeCriServer

VERSION = CriVersionResponse(runtime_name="fake", runtime_version="1")


@asynccontextmanager
async def client(socket: Path, *, seconds: float = 20.0) -> AsyncIterator[RuntimeService]:
    channel = CriChannel(f"unix://{socket}")
    try:
        yield RuntimeService(channel, request_seconds=seconds)
    finally:
        await channel.close()


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "s"


async def test_a_call_returns_the_answer(socket: Path) -> None:
    server = FakeCriServer()
    server.answers["Version"] = VERSION
    async with server.serve(socket), client(socket) as runtime:
        assert await runtime.version() == VERSION


async def test_a_runtime_that_hangs_is_down_after_the_deadline(socket: Path) -> None:
    server = FakeCriServer()
    server.hang("ListContainers")
    server.answers["Version"] = VERSION
    async with server.serve(socket), client(socket, seconds=0.2) as runtime:
        with pytest.raises(RuntimeDownError, match=r"answered ListContainers within 200ms") as down:
            await runtime.list_containers()
        assert str(socket) in str(down.value)
        assert await runtime.version() == VERSION, "one call that hangs must not block others"


async def test_no_runtime_says_what_to_do(socket: Path) -> None:
    async with client(socket) as runtime:
        with pytest.raises(RuntimeDownError, match="--container-runtime-endpoint") as down:
            await runtime.version()
        assert f"unix://{socket}" in str(down.value)


async def test_a_restarted_runtime_is_found_again(socket: Path) -> None:
    server = FakeCriServer()
    server.answers["Version"] = VERSION
    async with client(socket, seconds=5.0) as runtime:
        for _ in range(3):
            async with server.serve(socket):
                assert await eventually_version(runtime) == VERSION
            with pytest.raises(RuntimeDownError):
                await runtime.version()


async def eventually_version(runtime: RuntimeService) -> CriVersionResponse:
    """Call until there is an answer: connecting again takes up to a second."""
    while True:
        try:
            return await runtime.version()
        except RuntimeDownError:
            continue


async def test_a_runtime_without_cri_says_so(socket: Path) -> None:
    server = FakeCriServer()
    message = "unknown service runtime.v1.RuntimeService"
    server.fail("Version", grpc.StatusCode.UNIMPLEMENTED, message)
    async with server.serve(socket), client(socket) as runtime:
        with pytest.raises(RuntimeDownError, match="remove cri from disabled_plugins"):
            await runtime.version()


@pytest.mark.parametrize(
    ("code", "not_found"),
    [(grpc.StatusCode.NOT_FOUND, True), (grpc.StatusCode.UNKNOWN, False)],
)
async def test_an_error_of_a_call_has_its_code_and_message(
    socket: Path, code: grpc.StatusCode, *, not_found: bool
) -> None:
    server = FakeCriServer()
    server.fail("StartContainer", code, "no such thing")
    async with server.serve(socket), client(socket) as runtime:
        with pytest.raises(CriCallError) as caught:
            await runtime.start_container("c1")
    assert (caught.value.code, caught.value.message) == (code.name, "no such thing")
    assert caught.value.is_not_found is not_found


@pytest.mark.parametrize("body", [b"\x0a\xff", b"\x0a\x02\x0a\xff"])
async def test_a_malformed_answer_is_an_error_of_the_call(socket: Path, body: bytes) -> None:
    server = FakeCriServer()
    server.answers["ListContainers"] = body
    async with server.serve(socket), client(socket) as runtime:
        with pytest.raises(CriCallError, match="malformed response"):
            await runtime.list_containers()


async def test_a_stop_has_its_grace_period_in_addition(socket: Path) -> None:
    server = FakeCriServer()
    server.hang("StopContainer")
    async with server.serve(socket), client(socket, seconds=0.1) as runtime:
        with pytest.raises(RuntimeDownError, match=r"within 1\.1s"):
            await runtime.stop_container("c1", 1)


async def test_unchanged_items_of_a_list_are_the_same_objects(socket: Path) -> None:
    """Comparing them is then free."""
    server = FakeCriServer()
    one, two = (CriContainer(id=f"c{n}", labels={"a": "b"}) for n in (1, 2))
    listed = [(one, two), (two,), (one, two)]
    async with server.serve(socket), client(socket) as runtime:
        results = []
        for containers in listed:
            items = tuple(map(CODEC.encode, containers))
            server.answers["ListContainers"] = CriListContainersResponse(containers=items)
            results.append(await runtime.list_containers())
    assert results == listed
    assert results[0][1] is results[1][0] is results[2][1]
    assert results[0][0] is not results[2][0], "what was gone is not remembered"


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        ("unix:///run/containerd/containerd.sock", "unix:/run/containerd/containerd.sock"),
        ("/run/crio/crio.sock", "unix:/run/crio/crio.sock"),
    ],
)
def test_an_endpoint_is_a_socket(endpoint: str, address: str) -> None:
    assert socket_address(endpoint) == address


@pytest.mark.parametrize("endpoint", ["", "tcp://127.0.0.1:80", "unix://run/x", "npipe:////./x"])
def test_another_endpoint_is_rejected_with_an_example(endpoint: str) -> None:
    with pytest.raises(EndpointError, match="write unix:///run/containerd"):
        socket_address(endpoint)
