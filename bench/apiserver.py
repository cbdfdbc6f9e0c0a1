"""The throughput of the embedded API server, over TLS, with a store on disk and open watches.

The server runs in one process, the watchers in another, and this one sends ready flips as the
status manager would. Rounds with a small and a large store are interleaved, and medians are
reported. On shared cores all figures, CPU time included, vary by a third between runs: compare two
versions in interleaved rounds of one run, not in two runs.
"""

import asyncio
import contextlib
import json
import multiprocessing
import os
import selectors
import socket
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec

from podstatus import Pod, decode
from podstatus.apiserver.pki.certificates import Certificates
from podstatus.apiserver.pki.token_and_kubeconfig import ensure_token
from podstatus.apiserver.server import ApiServer
from podstatus.apiserver.state_dir import StateDir
from podstatus.apiserver.storage.store import Store
from podstatus.apiserver.strategies.by_resource import selectable_fields
from podstatus.status.decide.merge import prepare_status_patch
from statuses import pod_text

RESULTS = Path(__file__).parent / "results" / "apiserver.json"
STORES = (100, 10_000)
"""Numbers of pods in the compared stores."""
ROUNDS = 5
PATCHES = 2_000
"""Patches in one round."""
WATCHERS = 10
IDLE_WATCHERS = 100
"""Enough to measure the memory of one watcher by the size of the process."""
SENDERS = 8
"""Connections, each with one request in flight."""

AT_LEAST = {"patches_per_s": 1_000.0, "watch_events_per_s": 10_000.0}
AT_MOST = {"cost_ratio": 1.3}

_PODS = "/api/v1/namespaces/default/pods"
_SPAWN = multiprocessing.get_context("spawn")


class Address(msgspec.Struct, frozen=True):
    """The address and credentials of a server."""

    port: int
    token: str
    authority: str
    process: int

    def connect(self) -> ssl.SSLSocket:
        """Open a blocking connection to the server."""
        context = ssl.create_default_context(cadata=self.authority)
        plain = socket.create_connection(("127.0.0.1", self.port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(plain, server_hostname="127.0.0.1")

    def request(self, method: str, path: str, body: bytes = b"", kind: str = "json") -> bytes:
        """Return a request as bytes."""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Authorization: Bearer {self.token}\r\nAccept: application/json\r\n"
            f"Content-Type: application/{kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def patch(self, number: int, body: bytes) -> bytes:
        """Return a patch request for a pod's status as bytes."""
        kind = "strategic-merge-patch+json"
        return self.request("PATCH", f"{_PODS}/pod-{number}/status", body, kind)

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of the server so far."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        """Return the resident memory of the server."""
        pages = Path(f"/proc/{self.process}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")


def serve(path: str, report: Connection) -> None:
    """Run the process of the server."""
    asyncio.run(_serve(Path(path), report))


async def _serve(path: Path, report: Connection) -> None:
    folder = StateDir(path)
    certificates = Certificates(folder, time.time_ns())
    authority = certificates.ensure()
    token = ensure_token(folder)
    store = Store.open(path / "objects.db", selectable_fields)
    server = ApiServer(store, token=token, ssl_context=certificates.server_context())
    report.send(Address(await server.start(), token, authority.decode(), os.getpid()))
    await asyncio.Event().wait()


def watch(address: Address, watchers: int, version: str, seen: Any) -> None:
    """Run the watchers' process: count the received events."""
    chooser = selectors.DefaultSelector()
    for _ in range(watchers):
        connection = address.connect()
        path = f"/api/v1/pods?watch=true&resourceVersion={version}"
        connection.sendall(address.request("GET", path))
        _read_head(connection)
        connection.setblocking(False)
        chooser.register(connection, selectors.EVENT_READ)
    seen.value = 0
    while True:
        for ready, _ in chooser.select():
            # Only events end with a brace and a newline.
            seen.value += b"".join(_available(ready.fileobj)).count(b"}\n")


def _read_head(connection: ssl.SSLSocket) -> None:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += connection.recv(1)
    if b" 200 " not in head:
        raise SystemExit(f"cannot watch: {head.decode()}")


def _available(connection: Any) -> Iterator[bytes]:
    """Yield the available data. The server writes whole events, so none is split."""
    with contextlib.suppress(ssl.SSLWantReadError):
        while data := connection.recv(1 << 18):
            yield data
        raise SystemExit("the server has ended the watch")


class Senders:
    """Connections that each keep one request in flight."""

    def __init__(self, address: Address) -> None:
        self._chooser = selectors.DefaultSelector()
        self._connections = [address.connect() for _ in range(SENDERS)]
        for connection in self._connections:
            self._chooser.register(connection, selectors.EVENT_READ)

    def close(self) -> None:
        """Close the connections of all senders."""
        for connection in self._connections:
            connection.close()

    def send(self, requests: Sequence[bytes]) -> tuple[list[float], list[bytes]]:
        """Send all requests; return the seconds and the response body of each, in order."""
        waiting = iter(enumerate(requests))
        seconds, bodies = [0.0] * len(requests), [b""] * len(requests)
        in_flight: dict[ssl.SSLSocket, tuple[int, float]] = {}

        def send_next(connection: ssl.SSLSocket) -> None:
            number, request = next(waiting, (-1, b""))
            if request:
                in_flight[connection] = number, time.perf_counter()
                connection.sendall(request)

        for connection in self._connections:
            send_next(connection)
        while in_flight:
            for ready, _ in self._chooser.select():
                source: Any = ready.fileobj
                body = _read_body(source)
                number, begin = in_flight.pop(source)
                seconds[number], bodies[number] = time.perf_counter() - begin, body
                send_next(source)
        return seconds, bodies


def _read_body(connection: ssl.SSLSocket) -> bytes:
    data = connection.recv(1 << 16)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(1 << 16)
    if head[9:11] != b"20":
        raise SystemExit(f"the server returned an error: {body.decode()}")
    return body


class Rig:
    """A server with pods, its watchers, and the patches that flip each pod."""

    def __init__(self, pods: int, folder: str) -> None:
        self.pods = pods
        self._processes: list[Any] = []
        receive, report = _SPAWN.Pipe(duplex=False)
        self._start(serve, folder, report)
        self.address: Address = receive.recv()
        self.senders = Senders(self.address)
        before = self.address.resident_bytes()
        self._flips = self._fill()
        self.bytes_per_pod = (self.address.resident_bytes() - before) / pods
        self._sent = 0
        self._seen = self._watch(WATCHERS)

    def close(self) -> None:
        """Terminate the server and its watchers."""
        self.senders.close()
        for process in reversed(self._processes):
            process.terminate()
            process.join()

    def round(self) -> dict[str, float]:
        """Flip pods one after another, and wait until all watchers have received the events."""
        turns = range(self._sent, self._sent + PATCHES)
        requests = [self._flips[turn // self.pods % 2][turn % self.pods] for turn in turns]
        self._sent += PATCHES
        expected = self._seen.value + PATCHES * WATCHERS
        spent, begin = self.address.cpu_seconds(), time.perf_counter()
        seconds, _ = self.senders.send(requests)
        patched = time.perf_counter() - begin
        while self._seen.value < expected:
            time.sleep(0.001)
        delivered = time.perf_counter() - begin
        cuts = statistics.quantiles(seconds, n=100)
        return {
            "patches_per_s": PATCHES / patched,
            "watch_events_per_s": PATCHES * WATCHERS / delivered,
            "p50_ms": cuts[49] * 1e3,
            "p99_ms": cuts[98] * 1e3,
            "cpu_us_per_patch": (self.address.cpu_seconds() - spent) / PATCHES * 1e6,
        }

    def bytes_per_watcher(self) -> float:
        """Return the memory of a watcher without events."""
        before = self.address.resident_bytes()
        self._watch(IDLE_WATCHERS)
        return (self.address.resident_bytes() - before) / IDLE_WATCHERS

    def _start(self, work: Any, *arguments: Any) -> None:
        process = _SPAWN.Process(target=work, args=arguments, daemon=True)
        process.start()
        self._processes.append(process)

    def _watch(self, watchers: int) -> Any:
        (body,) = self.senders.send([self.address.request("GET", f"{_PODS}?limit=1")])[1]
        version = msgspec.json.decode(body)["metadata"]["resourceVersion"]
        seen = _SPAWN.Value("q", -1)
        self._start(watch, self.address, watchers, version, seen)
        while seen.value < 0:
            time.sleep(0.01)
        return seen

    def _fill(self) -> tuple[list[bytes], list[bytes]]:
        """Create running pods; return the patches that make them ready and unready."""
        texts = [
            [pod_text(number, ready=ready) for number in range(self.pods)]
            for ready in (False, True)
        ]
        created = self.senders.send([self._create(text) for text in texts[0]])[1]
        fresh = [decode(text, Pod) for text in created]
        unready, ready = ([decode(text, Pod) for text in side] for side in texts)
        self.senders.send(self._patches(fresh, fresh, unready))
        return self._patches(fresh, unready, ready), self._patches(fresh, ready, unready)

    def _create(self, text: bytes) -> bytes:
        document = msgspec.json.decode(text) | {"kind": "Pod", "apiVersion": "v1"}
        document["metadata"]["namespace"] = "default"
        return self.address.request("POST", _PODS, msgspec.json.encode(document))

    def _patches(self, real: list[Pod], old: list[Pod], new: list[Pod]) -> list[bytes]:
        changes = enumerate(zip(real, old, new, strict=True))
        return [
            self.address.patch(
                number, prepare_status_patch(pod.uid, before.status, after.status).body
            )
            for number, (pod, before, after) in changes
        ]


def measure(rigs: Sequence[Rig]) -> dict[str, float]:
    """Return the medians of interleaved rounds: of the large store, and the comparison."""
    rounds: dict[int, list[dict[str, float]]] = {rig.pods: [] for rig in rigs}
    for number in range(ROUNDS):
        for rig in rigs:
            rounds[rig.pods].append(rig.round())
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
    medians = {
        pods: {name: statistics.median(figures[name] for figures in all_) for name in all_[0]}
        for pods, all_ in rounds.items()
    }
    small, large = STORES
    figures = dict(medians[large])
    figures[f"cpu_us_per_patch_{small}"] = medians[small]["cpu_us_per_patch"]
    figures["cost_ratio"] = figures["cpu_us_per_patch"] / medians[small]["cpu_us_per_patch"]
    return figures


def main() -> None:
    """Measure, print a table and write the figures."""
    with contextlib.ExitStack() as stack:
        rigs = []
        for pods in STORES:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            rigs.append(Rig(pods, folder))
            stack.callback(rigs[-1].close)
        figures = measure(rigs)
        figures["bytes_per_pod"] = rigs[-1].bytes_per_pod
        figures["bytes_per_watcher"] = rigs[0].bytes_per_watcher()
    print(f"{'':<26}{'seen':>12}{'at least':>12}{'at most':>10}")
    for name, value in figures.items():
        minimum, maximum = AT_LEAST.get(name), AT_MOST.get(name)
        limits = f"{minimum or '':>12}{maximum or '':>10}".rstrip()
        print(f"{name:<26}{value:>12.2f}{limits}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({k: round(v, 4) for k, v in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
