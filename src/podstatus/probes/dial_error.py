"""Why a connection could not be made, as the kubelet says it: people grep for these words."""

import os
import socket

CONNECTION_REFUSED = "connect: connection refused"
IO_TIMEOUT = "i/o timeout"


def join_host_port(host: str, port: int) -> str:
    """A host, or an address, with its port."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def dial_error_message(host: str, port: int, error: OSError) -> str:
    """Why this host could not be reached at this port."""
    if isinstance(error, TimeoutError):
        return f"dial tcp {join_host_port(host, port)}: {IO_TIMEOUT}"
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {host}: {(error.strerror or str(error)).lower()}"
    # The text of asyncio names its own call instead of the reason.
    why = os.strerror(error.errno).lower() if error.errno else str(error)
    return f"dial tcp {join_host_port(host, port)}: connect: {why}"
