"""Connection errors in the wording of the kubelet, which users search for."""

import os
import socket

CONNECTION_REFUSED = "connect: connection refused"
IO_TIMEOUT = "i/o timeout"


def join_host_port(host: str, port: int) -> str:
    """host:port, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def dial_error_message(host: str, port: int, error: OSError) -> str:
    """The error of a failed connection to host:port, as Go words it."""
    if isinstance(error, TimeoutError):
        return f"dial tcp {join_host_port(host, port)}: {IO_TIMEOUT}"
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {host}: {(error.strerror or str(error)).lower()}"
    # asyncio's own message names the call instead of the cause.
    cause = os.strerror(error.errno).lower() if error.errno else str(error)
    return f"dial tcp {join_host_port(host, port)}: connect: {cause}"
