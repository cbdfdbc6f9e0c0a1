"""The size of a first message, from its beginning."""

import ssl
from contextlib import suppress

import pytest

from podstatus.base.net.first_message import MAX_HEAD_BYTES, client_hello_size, request_head_size


def client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    context = ssl.create_default_context()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def test_a_client_hello_is_whole_when_all_of_it_is_there() -> None:
    hello = client_hello()
    for size in range(5):
        assert client_hello_size(hello[:size]) == 5
    for size in range(5, len(hello) + 1):
        assert client_hello_size(hello[:size]) == len(hello)


@pytest.mark.parametrize(
    "start",
    [
        b"G",
        b"GET / HTTP/1.1\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x02",
        b"\x15\x03\x01\x00\x02",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\xff\xff",
        b"\x00" * 99,
    ],
)
def test_what_is_no_client_hello_is_not_waited_for(start: bytes) -> None:
    assert client_hello_size(start) is None


@pytest.mark.parametrize(
    ("start", "missing"),
    [
        (b"", 1),
        (b"GET / HT", 1),
        (b"GET / HTTP/1.1\r\nHost: x\r\n", 1),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 0),
        (b"GET / HTTP/1.1\n\n", 0),
        (b"x" * MAX_HEAD_BYTES, 0),
    ],
)
def test_a_head_is_whole_at_its_empty_line(start: bytes, missing: int) -> None:
    assert request_head_size(start) == len(start) + missing
