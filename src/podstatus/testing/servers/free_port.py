"""Ports for servers that start to listen later, or restart on the same port.

The kernel assigns ports of the ephemeral range to outgoing connections. A server that is down for a
moment could lose such a port to a connection, so these ports are outside of that range.
"""

import secrets
import socket
from contextlib import suppress
from pathlib import Path

_HOST = "127.0.0.1"
_EPHEMERAL_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DEFAULT_EPHEMERAL_RANGE = 32768, 60999
_FIRST, _LAST = 10_000, 65_535
"""Lower ports belong to well-known services."""


def free_port() -> int:
    """Return an unused loopback port outside of the ephemeral range."""
    first, last = _ephemeral_range()
    ports = [*range(_FIRST, first), *range(last + 1, _LAST + 1)]
    while True:
        with suppress(OSError), _listen(secrets.choice(ports or [0])) as listener:
            port: int = listener.getsockname()[1]
            return port


def _ephemeral_range() -> tuple[int, int]:
    try:
        first, last = _EPHEMERAL_RANGE_FILE.read_text().split()
    except OSError:  # not on Linux
        return _DEFAULT_EPHEMERAL_RANGE
    return int(first), int(last)


def _listen(port: int) -> socket.socket:
    return socket.create_server((_HOST, port))
