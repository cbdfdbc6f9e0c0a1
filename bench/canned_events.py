"""A server with prepared watch events, which needs almost no CPU time itself.

A real server that produces the events, and a process that writes, would keep two cores busy and
double all times. Each event is a separate chunk and TLS record, as servers send them.
"""

import asyncio
import ssl
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec

from podstatus.apiserver.pki.certificates import Certificates
from podstatus.apiserver.state_dir import StateDir

Document = dict[str, Any]
MakePod = Callable[[int], Document]

FIRST_VERSION = 1_000


def _seen(pod: Document, number: int, version: int) -> Document:
    """Return a pod as a server sends it."""
    metadata = {
        **pod["metadata"],
        "namespace": "default",
        "uid": f"00000000-0000-0000-0000-{number:012}",
        "resourceVersion": str(version),
        "creationTimestamp": "2024-01-01T00:00:00Z",
    }
    ready = {
        "type": "Ready",
        "status": "True" if version % 2 else "False",
        "lastProbeTime": None,
        "lastTransitionTime": "2024-01-01T00:00:00Z",
    }
    status = {"phase": "Running", "conditions": [ready], "qosClass": "BestEffort"}
    return {**pod, "kind": "Pod", "apiVersion": "v1", "metadata": metadata, "status": status}


class CannedServer:
    """Returns the same pods for every list, and the same events for every watch."""

    def __init__(self, make_pod: MakePod, pods: int, events: int) -> None:
        items = [_seen(make_pod(number), number, FIRST_VERSION) for number in range(pods)]
        meta = {"resourceVersion": str(FIRST_VERSION)}
        listed = {"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": items}
        self._list = msgspec.json.encode(listed)
        self.events = [
            _chunk(_event(_seen(make_pod(turn % pods), turn % pods, FIRST_VERSION + 1 + turn)))
            for turn in range(events)
        ]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the requests of one connection."""
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                if b"watch=" not in request.partition(b"\r\n")[0]:
                    writer.write(_head(f"Content-Length: {len(self._list)}") + self._list)
                    continue
                writer.write(_head("Transfer-Encoding: chunked"))
                for event in self.events:
                    writer.write(event)
                    await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()


def _event(pod: Document) -> bytes:
    return msgspec.json.encode({"type": "MODIFIED", "object": pod}) + b"\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _head(header: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{header}\r\n\r\n".encode()


async def _serve(server: CannedServer, folder: str, pipe: Connection) -> None:
    certificates = Certificates(StateDir(Path(folder)), time.time_ns())
    authority = Path(folder) / "trusted.crt"
    authority.write_bytes(certificates.ensure())
    context = certificates.server_context()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context)
    pipe.send((listening.sockets[0].getsockname()[1], str(authority)))
    await asyncio.Event().wait()


def serve(make_pod: MakePod, pods: int, events: int, folder: str, pipe: Connection) -> None:
    """Run the server's process; send its port and CA file through the pipe."""
    asyncio.run(_serve(CannedServer(make_pod, pods, events), folder, pipe))
