"""Two API servers behind one face: the embedded one, and a real kube-apiserver with its etcd."""

import itertools
import json
import os
import queue
import socket
import string
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, Literal

from podstatus.testing.apiserver import ApiServerThread
from podstatus.testing.servers.access import ServerAccess
from podstatus.testing.servers.kube_apiserver import KubeApiServer, running_kube_apiserver

Document = dict[str, Any]
Kind = Literal["embedded", "real"]

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


def node_names(worker: str) -> tuple[str, ...]:
    """Nodes of one worker of xdist that have a user each on the real server."""
    return tuple(f"node-{letter}-{worker}" for letter in string.ascii_lowercase)


NODES = node_names(os.environ.get("PYTEST_XDIST_WORKER", "gw0"))
"""Ours: all workers share the real server."""

_SECONDS = 90.0
_IDLE_SECONDS = 20.0
_MAX_KEPT = 8
_numbers = itertools.count()


class Client:
    """One user of a server, on one connection that is kept alive."""

    def __init__(self, access: ServerAccess) -> None:
        self._access = access
        self._connection = access.connect()
        self._used_at = time.monotonic()

    def ask(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> tuple[int, Any]:
        """Code and body of the answer: JSON, or text if it is none. A text is sent as it is."""
        headers = {"Authorization": f"Bearer {self._access.token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = content_type
            body = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        code, text = self._send(method, path, body, headers)
        try:
            return code, json.loads(text)
        except ValueError:
            return code, text

    def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, str]:
        # Servers close connections that nobody uses, and tests may come minutes apart.
        if time.monotonic() - self._used_at > _IDLE_SECONDS:
            self._connection.close()
        self._used_at = time.monotonic()
        try:
            self._connection.request(method, path, body, headers)
            response = self._connection.getresponse()
            return response.status, response.read().decode()
        except BaseException:
            # The next one who asks begins anew.
            self._connection.close()
            raise

    def get(self, path: str) -> tuple[int, Any]:
        return self.ask("GET", path)

    def create(self, path: str, body: Any) -> tuple[int, Any]:
        return self.ask("POST", path, body)

    def replace(self, path: str, body: Any) -> tuple[int, Any]:
        return self.ask("PUT", path, body)

    def patch(self, path: str, body: Any, content_type: str = STRATEGIC) -> tuple[int, Any]:
        return self.ask("PATCH", path, body, content_type)

    def delete(self, path: str, options: Any = None) -> tuple[int, Any]:
        return self.ask("DELETE", path, options)

    def close(self) -> None:
        self._connection.close()


def get_kept(access: ServerAccess, path: str) -> tuple[int, Any]:
    """Read from a server that is asked again and again, on a connection that is kept alive."""
    key = access.url, access.token, threading.get_ident()
    if key not in _kept:
        if len(_kept) == _MAX_KEPT:
            _kept.pop(next(iter(_kept))).close()
        _kept[key] = Client(access)
    try:
        return _kept[key].get(path)
    except (OSError, HTTPException):
        # The server may have closed it, or is another one by now.
        return _kept[key].get(path)


class Watch:
    """The events of a watch, each waited for with a deadline."""

    def __init__(self, response: HTTPResponse) -> None:
        self.code = response.status
        self._events: queue.Queue[Document | None] = queue.Queue()
        self._thread = threading.Thread(target=self._read, args=(response,))
        self._thread.start()

    def next(self) -> Document:
        """The next event. Fails if the watch ended, or none comes."""
        event = self._events.get(timeout=_SECONDS)
        assert event is not None, "the watch ended"
        return event

    def rest(self) -> list[Document]:
        """All events until the server ends the watch."""
        return list(iter(lambda: self._events.get(timeout=_SECONDS), None))

    def follow(self) -> Iterator[Document]:
        """All events until the server ends the watch, however late."""
        return iter(self._events.get, None)

    def join(self) -> None:
        self._thread.join(_SECONDS)

    def _read(self, response: HTTPResponse) -> None:
        # Whoever has had enough closes the connection.
        with suppress(OSError, ValueError, HTTPException):
            while line := response.readline():
                self._events.put(json.loads(line))
        self._events.put(None)


_kept: dict[tuple[str, str, int], Client] = {}


class Server:
    """A server that runs for all tests of this process."""

    def __init__(self, kind: Kind, access: ServerAccess) -> None:
        self.kind = kind
        self.access = access
        self.client = Client(access)

    @property
    def is_real(self) -> bool:
        return self.kind == "real"

    def node_access(self, _node: str) -> ServerAccess:
        """As the agent of one of the nodes has it."""
        return self.access

    @contextmanager
    def watch(self, path: str) -> Iterator[Watch]:
        """Watch at a path; the end of it is the caller's, or the server's."""
        connection = self.access.connect()
        connection.connect()
        sock = connection.sock
        sock.settimeout(None)  # `Watch.next` has a deadline
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.access.token}"})
        watch = Watch(connection.getresponse())
        try:
            yield watch
        finally:
            _hang_up(sock)
            watch.join()
            connection.close()

    def new_namespace(self) -> str:
        """One that nobody else uses."""
        name = f"case-{os.getpid()}-{next(_numbers)}"
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        code, answer = self.client.create("/api/v1/namespaces", namespace)
        assert code == 201, answer
        return name

    def forget_node(self, name: str) -> None:
        """Leave nothing of a node to those who come after: they may have one of the same name."""
        _, found = self.client.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{name}")
        for pod in found["items"]:
            meta = pod["metadata"]
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
            self.client.delete(path, {"gracePeriodSeconds": 0})
        self.client.delete(f"/api/v1/nodes/{name}")

    def forget(self) -> None:
        """Let the server forget all changes up to now."""
        raise NotImplementedError

    def close(self) -> None:
        self.client.close()


def _hang_up(connection: socket.socket) -> None:
    """Wake whoever reads from it."""
    with suppress(OSError):  # the server was faster
        connection.shutdown(socket.SHUT_RDWR)


class EmbeddedServer(Server):
    """The one of this project, in a thread."""

    def __init__(self, server: ApiServerThread) -> None:
        super().__init__("embedded", server)
        self._server = server

    def inject(self, *rules: Document) -> None:
        """Replace the faults of the server by these."""
        self._server.inject(*rules)

    def forget(self) -> None:
        self._server.inject({"verb": "get", "action": "compact", "times": 1})
        self.client.get("/api/v1/namespaces/default")


class RealServer(Server):
    """kube-apiserver, which another process may have started."""

    def __init__(self, server: KubeApiServer) -> None:
        super().__init__("real", server.access)
        self._server = server

    def node_access(self, node: str) -> ServerAccess:
        return self._server.node_access(node)

    def forget(self) -> None:
        # etcd forgets when it is told to, the server's cache when it is a new one.
        self._server.compact()
        self._server.kill()
        self._server.start()
        self.client.close()


@contextmanager
def own_real_server(folder: Path) -> Iterator[RealServer]:
    """One that no other worker uses: to be let forget, or for what is in no namespace."""
    with running_kube_apiserver(folder, nodes=NODES) as running:
        server = RealServer(running)
        yield server
        server.close()
