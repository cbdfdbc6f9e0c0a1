"""A port for a server that begins to listen later, or comes back where it was.

The kernel gives ports of a range of its own to whoever connects to something. A server that is away
for a moment may find such a port taken by somebody who only passes by, so ours are outside of it.
"""

import secrets
import socket
from contextlib import suppress
from pathlib import Path

_HOST = "127.0.0.1"
_EPHEMERAL_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DEFAULT_EPHEMERAL_RANGE = 32768, 60999
_FIRST, _LAST = 10_000, 65_535
"""Below are those of well-known services."""


def free_port() -> int:
    """A port of loopback that nobody uses, and that nobody is given by chance."""
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
