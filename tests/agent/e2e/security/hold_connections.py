"""A program that holds many connections to a port open, and opens closed ones again.

    python -m tests.agent.e2e.security.hold_connections PORT COUNT SECONDS WHAT

WHAT: `silent` sends nothing; `byte` the first byte of a TLS record; `hello` half a ClientHello,
`flight` a whole one; `tls` a whole handshake; `asked` a handshake and a request for /healthz;
`plain` half a request.
It prints how many connections it opened and how many of them were closed by the server.
"""

import resource
import selectors
import socket
import ssl
import sys
import time
from contextlib import suppress

HALF_A_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
OPENED_AT_ONCE = 200
_TICK_SECONDS = 0.02
_OWN_DESCRIPTORS = 50


def client_hello() -> bytes:
    """What a client says first."""
    outgoing = ssl.MemoryBIO()
    context = trusting_context()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def trusting_context() -> ssl.SSLContext:
    """Trusts any server: an attacker does not care."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Held:
    """One connection."""

    def __init__(self, port: int, what: str) -> None:
        self.what = what
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.tls: ssl.SSLSocket | None = None
        with suppress(BlockingIOError):
            self.socket.connect(("127.0.0.1", port))

    def connected(self, context: ssl.SSLContext, hello: bytes) -> None:
        """Say what is to be said first. Raises OSError."""
        if self.what == "byte":
            self.socket.send(hello[:1])
        elif self.what == "hello":
            self.socket.send(hello[: len(hello) // 2])
        elif self.what == "flight":
            self.socket.send(hello)
        elif self.what == "plain":
            self.socket.send(HALF_A_REQUEST)
        elif self.what in ("tls", "asked"):
            self.tls = context.wrap_socket(self.socket, do_handshake_on_connect=False)
            self.socket = self.tls
            self.readable()

    def readable(self) -> bool:
        """Whether it is open still. Raises OSError."""
        if self.tls is None:
            return bool(self.socket.recv(4096))
        try:
            if self.tls.version() is None or self.what == "tls":
                self.tls.do_handshake()
                if self.what == "asked":
                    self.tls.send(REQUEST)
            return bool(self.tls.recv(4096))
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return True


def hold(port: int, count: int, seconds: float, what: str) -> tuple[int, int]:
    """Until the time is over; how many were opened, how many were closed by the server."""
    selector, context, hello = selectors.DefaultSelector(), trusting_context(), client_hello()
    opened = closed = held = 0
    count = min(count, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _OWN_DESCRIPTORS)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(min(OPENED_AT_ONCE, count - held)):
            made = Held(port, what)
            selector.register(made.socket, selectors.EVENT_WRITE, made)
            opened, held = opened + 1, held + 1
        for key, events in selector.select(_TICK_SECONDS):
            made = key.data
            try:
                if events & selectors.EVENT_WRITE:
                    selector.unregister(key.fileobj)
                    made.connected(context, hello)
                    selector.register(made.socket, selectors.EVENT_READ, made)
                    continue
                is_open = made.readable()
            except ConnectionRefusedError:
                is_open = False
                time.sleep(_TICK_SECONDS)  # there is no server any more
            except (OSError, ValueError):
                is_open = False
            if not is_open:
                with suppress(KeyError, ValueError):
                    selector.unregister(key.fileobj)
                made.socket.close()
                closed, held = closed + 1, held - 1
    return opened, closed


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    port, count, seconds, what = sys.argv[1:]
    print(*hold(int(port), int(count), float(seconds), what), flush=True)  # noqa: T201
