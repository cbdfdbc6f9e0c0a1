"""Why a connection could not be made, as the kubelet says it: people grep for these words."""

import os
import socket

REFUSED = "connect: connection refused"
TOO_LATE = "i/o timeout"


def place(host: str, port: int) -> str:
    """A host, or an address, with its port."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def dial_words(host: str, port: int, error: OSError) -> str:
    """Why this host could not be reached at this port."""
    if isinstance(error, TimeoutError):
        return f"dial tcp {place(host, port)}: {TOO_LATE}"
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {host}: {(error.strerror or str(error)).lower()}"
    # The text of asyncio names its own call instead of the reason.
    why = os.strerror(error.errno).lower() if error.errno else str(error)
    return f"dial tcp {place(host, port)}: connect: {why}"
