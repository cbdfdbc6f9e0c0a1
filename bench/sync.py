"""How fast statuses reach the API server, next to what it allows and to the kubelet's own manager.

Each contender is a process with a node of its own: pods on a real kube-apiserver, whose ready
flips it sets all at once. A burst ends when an observer in a process of its own, with a watch of
all pods, has seen the last flip; latencies count from the moment the first one was set. Contenders
take turns within a round, and medians count. Connections stay open from turn to turn.

- limit: a bare loop that sends the patches a manager would, at its best number of connections.
- default: StatusManager over podstatus' client as it ships; its directory is fed by a watch.
- upstream_policy: the same with `SyncPolicy.upstream()`.
- go, go_default_qps: upstream's manager with client-go, without a limit of requests, and with the
  kubelet's of 50 a second. The latter takes one turn only: its limit decides, and takes its time.

`loopback` is as it is; `rtt10` leads the contenders through a proxy that delivers every byte 5 ms
later in each direction. The observer's own way is never longer: what it saw is when it arrived.
"""

import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import structs

from peers.build_kubelet import kubelet_program
from peers.delay_proxy import Entrance, Way
from peers.node_objects import create_pods
from peers.orders import Await, Flip, Report, Seen, Set, Start, Started
from peers.process import Peer
from podstatus.client import ApiClient, token_config
from podstatus.testing.servers.access import ServerAccess
from podstatus.testing.servers.binaries import MissingBinariesError
from podstatus.testing.servers.kube_apiserver import running_kube_apiserver

RESULTS = Path(__file__).parent / "results" / "sync.json"
PODS = 500
ROUNDS = 5
CONNECTIONS = (8, 16, 32, 64)
"""Of the bare loop; the best counts."""
WAYS = {"loopback": 0.0, "rtt10": 0.005}
"""Seconds that each direction takes."""

AT_LEAST = {"loopback": 0.80, "rtt10": 0.85}
"""Of the limit's rate."""
AT_MOST_P99 = 1.5
"""Times what the limit takes for a burst."""
AT_MOST_REQUESTS = 1.05
AT_MOST_CPU_MS = 0.5
"""For a status, above the limit's."""

_NODES = ("limit", "default", "upstream", "go", "go-default-qps")
_PAUSE = 0.3
"""Seconds between two turns, so that nobody pays for what another one still has to read."""


class Contender(msgspec.Struct, frozen=True, kw_only=True):
    """Who takes turns. Those of one node share a process."""

    name: str
    node: str
    command: Sequence[str]
    policy: str = "default"
    qps: float = -1
    burst: int = 0
    connections: int = 0
    once: bool = False


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Of a burst, or the medians of several."""

    per_s: float
    p99_ms: float
    requests: float
    """For a status that arrived."""
    cpu_ms: float
    """For a status that arrived, in the contender's process."""


def contenders(kubelet: Path | None) -> list[Contender]:
    """Everybody who can be had on this machine."""
    limit, manager = ([sys.executable, "-m", f"peers.{name}"] for name in ("limit", "manager"))
    found = [
        Contender(name=f"limit_{number}", node="limit", command=limit, connections=number)
        for number in CONNECTIONS
    ]
    found += [
        Contender(name="default", node="default", command=manager),
        Contender(name="upstream_policy", node="upstream", command=manager, policy="upstream"),
    ]
    if kubelet is not None:
        go = [str(kubelet)]
        found += [
            Contender(name="go", node="go", command=go),
            Contender(
                name="go_default_qps",
                node="go-default-qps",
                command=go,
                qps=50,
                burst=100,
                once=True,
            ),
        ]
    return found


class Entrant:
    """A contender's process, and how its pods are."""

    def __init__(self, contender: Contender, access: ServerAccess, server: str) -> None:
        self._node = contender.node
        self._peer = Peer(contender.command)
        start = Start(
            server=server,
            token=access.token,
            authority=str(access.authority),
            node=contender.node,
            policy=contender.policy,
            qps=contender.qps,
            burst=contender.burst,
        )
        self._ready = self._peer.ask(start, Started).ready

    def close(self) -> None:
        """Let it go."""
        self._peer.close()

    def burst(self, observer: Peer, connections: int) -> Figures:
        """Flip all pods; what that took."""
        self._ready = not self._ready
        began = self._peer.ask(Flip(self._ready, connections), Set).began_ns
        seen = observer.ask(Await(self._node, self._ready), Seen).at_ns
        report = self._peer.ask(Flip(), Report)
        took = [(at - began) / 1e9 for at in seen]
        return Figures(
            per_s=len(took) / max(took),
            p99_ms=statistics.quantiles(took, n=100, method="inclusive")[98] * 1e3,
            requests=report.requests / len(took),
            cpu_ms=report.cpu_seconds / len(took) * 1e3,
        )


Accesses = Callable[[str], ServerAccess]
"""By the name of a node; those of an admin for none."""


@contextlib.contextmanager
def running_server() -> Iterator[Accesses]:
    """The server that is measured: a real one, on which each node is its own user."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_kube_apiserver(Path(folder), nodes=_NODES) as server,
    ):
        yield lambda node: server.node_access(node) if node else server.access


@contextlib.contextmanager
def way_to(server: str, delay_seconds: float) -> Iterator[str]:
    """The server's address, or that of the proxy before it."""
    if not delay_seconds:
        yield server
        return
    proxy = Peer([sys.executable, "-m", "peers.delay_proxy"])
    try:
        way = Way(urlsplit(server).port or 443, delay_seconds)
        yield f"https://127.0.0.1:{proxy.ask(way, Entrance).port}"
    finally:
        proxy.close()


async def fill(access: ServerAccess, nodes: Sequence[str]) -> None:
    """Give every node its pods."""
    async with ApiClient(token_config(access.url, access.token, access.authority)) as client:
        await create_pods(client, nodes, PODS)


@contextlib.contextmanager
def observing(access: ServerAccess) -> Iterator[Peer]:
    """Somebody who watches all pods."""
    observer = Peer([sys.executable, "-m", "peers.observer"])
    start = Start(server=access.url, token=access.token, authority=str(access.authority), node="")
    try:
        observer.ask(start, Started)
        yield observer
    finally:
        observer.close()


def measure(
    way: str, server: str, accesses: Accesses, found: Sequence[Contender]
) -> dict[str, Figures]:
    """Interleaved rounds of all contenders over one way; medians by name."""
    rounds: dict[str, list[Figures]] = {contender.name: [] for contender in found}
    with contextlib.ExitStack() as stack:
        observer = stack.enter_context(observing(accesses("")))
        entrants: dict[str, Entrant] = {}
        for contender in found:
            if contender.node not in entrants:
                entrant = Entrant(contender, accesses(contender.node), server)
                stack.callback(entrant.close)
                entrants[contender.node] = entrant
        for number in range(ROUNDS):
            taking_part = [one for one in found if number == 0 or not one.once]
            for contender in taking_part:
                time.sleep(_PAUSE)
                entrant = entrants[contender.node]
                rounds[contender.name].append(entrant.burst(observer, contender.connections))
            rates = (f"{one.name} {rounds[one.name][-1].per_s:.0f}" for one in taking_part)
            print(f"{way} round {number + 1} of {ROUNDS}: {', '.join(rates)}", file=sys.stderr)
    return {name: medians(seen) for name, seen in rounds.items()}


def medians(rounds: Sequence[Figures]) -> Figures:
    """Of each figure by itself."""
    names = Figures.__struct_fields__
    return Figures(**{n: statistics.median(getattr(one, n) for one in rounds) for n in names})


def with_best_limit(seen: Mapping[str, Figures]) -> dict[str, Figures]:
    """The figures with those of the best number of connections as the limit."""
    best = max((seen[f"limit_{number}"] for number in CONNECTIONS), key=lambda one: one.per_s)
    return {"limit": best, **seen}


def results(seen: Mapping[str, Figures]) -> dict[str, float | None]:
    """What is written of one way."""
    go, go_default_qps = seen.get("go"), seen.get("go_default_qps")
    figures = {
        "limit_per_s": seen["limit"].per_s,
        "default_per_s": seen["default"].per_s,
        "upstream_policy_per_s": seen["upstream_policy"].per_s,
        "go_per_s": None if go is None else go.per_s,
        "go_default_qps_per_s": None if go_default_qps is None else go_default_qps.per_s,
        "default_p99_ms": seen["default"].p99_ms,
        "go_p99_ms": None if go is None else go.p99_ms,
        "requests_per_status": seen["default"].requests,
        "cpu_ms_per_status": seen["default"].cpu_ms,
        "limit_cpu_ms_per_status": seen["limit"].cpu_ms,
    }
    return {name: None if value is None else round(value, 4) for name, value in figures.items()}


def print_contenders(way: str, seen: Mapping[str, Figures]) -> None:
    """What each contender did."""
    print(f"\n{way:<26}{'per_s':>10}{'p99_ms':>10}{'requests':>10}{'cpu_ms':>10}")
    for name, one in seen.items():
        print(f"{name:<26}" + "".join(f"{value:>10.2f}" for value in structs.astuple(one)))


def print_verdict(way: str, seen: Mapping[str, Figures]) -> None:
    """What must be so, and the multiples of Go."""
    limit, default = seen["limit"], seen["default"]
    rows: list[tuple[str, float, float | str, float | str]] = [
        ("default/limit", default.per_s / limit.per_s, AT_LEAST[way], ""),
        ("p99/limit's burst", default.p99_ms / 1e3 / (PODS / limit.per_s), "", AT_MOST_P99),
        ("requests per status", default.requests, "", AT_MOST_REQUESTS),
        ("cpu_ms above limit's", default.cpu_ms - limit.cpu_ms, "", AT_MOST_CPU_MS),
    ]
    rows += [
        (f"default/{name}", default.per_s / seen[name].per_s, "", "")
        for name in ("upstream_policy", "go", "go_default_qps")
        if name in seen
    ]
    print(f"\n{way:<26}{'seen':>10}{'at least':>10}{'at most':>10}")
    for name, value, least, most in rows:
        print(f"{name:<26}{value:>10.2f}{least:>10}{most:>10}".rstrip())


def main() -> None:
    """Measure, print tables and write the figures."""
    found = contenders(kubelet_program())
    written = {}
    try:
        with running_server() as accesses:
            asyncio.run(fill(accesses(""), sorted({contender.node for contender in found})))
            for way, delay_seconds in WAYS.items():
                with way_to(accesses("").url, delay_seconds) as server:
                    seen = with_best_limit(measure(way, server, accesses, found))
                print_contenders(way, seen)
                print_verdict(way, seen)
                written[way] = results(seen)
    except MissingBinariesError as error:
        sys.exit(f"bench-sync: {error}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(written, indent=1))


if __name__ == "__main__":
    main()
