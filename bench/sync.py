"""The throughput of status updates, compared with the server's limit and the kubelet's manager.

Each contender is a process with its own node: pods on a real kube-apiserver, whose ready flips it
sets all at once. A burst ends when an observer in a separate process, with a watch of all pods, has
received the last flip; latencies are measured from the first set status. Connections stay open
between bursts.

The rates of one machine vary threefold between rounds, for all contenders alike. So contenders are
interleaved within a round and compared within it: a ratio is that of one round, and the median and
the quartiles of all rounds are reported.

- limit: a bare loop that sends the patches of a manager, with the best number of connections of
  the same round.
- default: StatusManager with podstatus' client in its defaults; a watch feeds its pod manager.
- upstream_policy: the same with `SyncPolicy.upstream()`.
- go, go_default_qps: upstream's manager with client-go, without a rate limit, and with the
  kubelet's default of 50 per second. The latter runs only once: its rate limit determines its time.

`loopback` has no added delay; with `rtt10` the contenders use a proxy that delays every byte by
5 ms in each direction. The observer never uses the proxy, so it sees when a status has arrived.
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
ROUNDS = 9
CONNECTIONS = (8, 16, 32, 64)
"""Connections of the bare loop; the best number of each round is used."""
WAYS = {"loopback": 0.0, "rtt10": 0.005}
"""Added delay per direction, in seconds."""

AT_LEAST = {"loopback": 0.90, "rtt10": 0.95}
"""Minimum fraction of the limit's rate, in the median of the rounds."""
AT_MOST_P99 = 1.5
"""Maximum p99 latency, as a multiple of the limit's burst duration."""
AT_MOST_REQUESTS = 1.05
AT_MOST_CPU_MS = 0.5
"""Maximum CPU time per status above the limit's."""

_NODES = ("limit", "default", "upstream", "go", "go-default-qps")
_PAUSE = 0.3
"""Seconds between two bursts, so that a contender does not pay for unread events of another."""


class Contender(msgspec.Struct, frozen=True, kw_only=True):
    """A measured program. Contenders with the same node share a process."""

    name: str
    node: str
    command: Sequence[str]
    policy: str = "default"
    qps: float = -1
    burst: int = 0
    connections: int = 0
    once: bool = False


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a burst, or the medians of several."""

    per_s: float
    p99_ms: float
    requests: float
    """Requests per delivered status."""
    cpu_ms: float
    """CPU time per delivered status, in the contender's process."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The median and the quartiles of a figure over all rounds."""

    median: float
    low: float
    high: float


Rounds = Mapping[str, Sequence[Figures]]
"""The figures of each round, by contender."""


def contenders(kubelet: Path | None) -> list[Contender]:
    """Return all contenders that are available on this machine."""
    limit, manager = ([sys.executable, "-m", f"peers.{name}"] for name in ("limit", "manager"))
    available = [
        Contender(name=f"limit_{number}", node="limit", command=limit, connections=number)
        for number in CONNECTIONS
    ]
    available += [
        Contender(name="default", node="default", command=manager),
        Contender(name="upstream_policy", node="upstream", command=manager, policy="upstream"),
    ]
    if kubelet is not None:
        go = [str(kubelet)]
        available += [
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
    return available


class Entrant:
    """A contender's process, and the readiness of its pods."""

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
        """End the process of the contender."""
        self._peer.close()

    def burst(self, observer: Peer, connections: int) -> Figures:
        """Flip all pods, and return the figures."""
        self._ready = not self._ready
        began = self._peer.ask(Flip(self._ready, connections), Set).began_ns
        seen = observer.ask(Await(self._node, self._ready), Seen).at_ns
        report = self._peer.ask(Flip(), Report)
        latencies = [(at - began) / 1e9 for at in seen]
        return Figures(
            per_s=len(latencies) / max(latencies),
            p99_ms=statistics.quantiles(latencies, n=100, method="inclusive")[98] * 1e3,
            requests=report.requests / len(latencies),
            cpu_ms=report.cpu_seconds / len(latencies) * 1e3,
        )


Accesses = Callable[[str], ServerAccess]
"""Returns the access of a node by name; of the admin for ""."""


@contextlib.contextmanager
def running_server() -> Iterator[Accesses]:
    """Run a real kube-apiserver on which each node is a separate user."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_kube_apiserver(Path(folder), nodes=_NODES) as server,
    ):
        yield lambda node: server.node_access(node) if node else server.access


@contextlib.contextmanager
def way_to(server: str, delay_seconds: float) -> Iterator[str]:
    """Yield the URL of the server, or of a delay proxy for it."""
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
    """Create the pods of all nodes."""
    async with ApiClient(token_config(access.url, access.token, access.authority)) as client:
        await create_pods(client, nodes, PODS)


@contextlib.contextmanager
def observing(access: ServerAccess) -> Iterator[Peer]:
    """Run an observer that watches all pods."""
    observer = Peer([sys.executable, "-m", "peers.observer"])
    start = Start(server=access.url, token=access.token, authority=str(access.authority), node="")
    try:
        observer.ask(start, Started)
        yield observer
    finally:
        observer.close()


def measure(
    way: str, server: str, accesses: Accesses, all_contenders: Sequence[Contender]
) -> Rounds:
    """Run interleaved rounds of all contenders with one delay."""
    rounds: dict[str, list[Figures]] = {contender.name: [] for contender in all_contenders}
    with contextlib.ExitStack() as stack:
        observer = stack.enter_context(observing(accesses("")))
        entrants: dict[str, Entrant] = {}
        for contender in all_contenders:
            if contender.node not in entrants:
                entrant = Entrant(contender, accesses(contender.node), server)
                stack.callback(entrant.close)
                entrants[contender.node] = entrant
        for number in range(ROUNDS):
            taking_part = [one for one in all_contenders if number == 0 or not one.once]
            for contender in taking_part:
                time.sleep(_PAUSE)
                entrant = entrants[contender.node]
                rounds[contender.name].append(entrant.burst(observer, contender.connections))
            rates = (f"{one.name} {rounds[one.name][-1].per_s:.0f}" for one in taking_part)
            print(f"{way} round {number + 1} of {ROUNDS}: {', '.join(rates)}", file=sys.stderr)
    return with_limit(rounds)


def with_limit(rounds: Rounds) -> Rounds:
    """Add the best number of connections of each round as the limit."""
    bursts = zip(*(rounds[f"limit_{number}"] for number in CONNECTIONS), strict=True)
    return {"limit": [max(burst, key=lambda one: one.per_s) for burst in bursts], **rounds}


def medians(rounds: Sequence[Figures]) -> Figures:
    """Return the median of each figure."""
    names = Figures.__struct_fields__
    return Figures(**{n: statistics.median(getattr(round_, n) for round_ in rounds) for n in names})


def paired(rounds: Rounds, name: str, compare: Callable[[Figures, Figures], float]) -> Spread:
    """Compare the default with another contender of the same round, in all rounds of the other."""
    figures = [compare(*pair) for pair in zip(rounds["default"], rounds[name], strict=False)]
    low, median, high = (
        statistics.quantiles(figures, n=4, method="inclusive") if figures[1:] else figures * 3
    )
    return Spread(median=median, low=low, high=high)


def rate_ratio(default: Figures, other: Figures) -> float:
    """Return the rate as a fraction of another's."""
    return default.per_s / other.per_s


def results(rounds: Rounds) -> dict[str, float | None]:
    """Return the figures of one delay as they are stored."""
    by_name = {name: medians(figures) for name, figures in rounds.items()}
    of_limit = paired(rounds, "limit", rate_ratio)
    go, go_default_qps = by_name.get("go"), by_name.get("go_default_qps")
    figures = {
        "limit_per_s": by_name["limit"].per_s,
        "default_per_s": by_name["default"].per_s,
        "default_of_limit": of_limit.median,
        "default_of_limit_low": of_limit.low,
        "default_of_limit_high": of_limit.high,
        "upstream_policy_per_s": by_name["upstream_policy"].per_s,
        "go_per_s": None if go is None else go.per_s,
        "go_default_qps_per_s": None if go_default_qps is None else go_default_qps.per_s,
        "default_p99_ms": by_name["default"].p99_ms,
        "go_p99_ms": None if go is None else go.p99_ms,
        "requests_per_status": by_name["default"].requests,
        "cpu_ms_per_status": by_name["default"].cpu_ms,
        "limit_cpu_ms_per_status": by_name["limit"].cpu_ms,
    }
    return {name: None if value is None else round(value, 4) for name, value in figures.items()}


def print_contenders(way: str, rounds: Rounds) -> None:
    """Print the medians of each contender."""
    print(f"\n{way:<26}{'per_s':>10}{'p99_ms':>10}{'requests':>10}{'cpu_ms':>10}")
    for name, figures in rounds.items():
        values = structs.astuple(medians(figures))
        print(f"{name:<26}" + "".join(f"{value:>10.2f}" for value in values))


def print_verdict(way: str, rounds: Rounds) -> None:
    """Print the figures with limits, and the comparison with Go: pairs of the same round."""
    rows: list[tuple[str, Spread, float | str, float | str]] = [
        ("default/limit", paired(rounds, "limit", rate_ratio), AT_LEAST[way], ""),
        ("p99/limit's burst", paired(rounds, "limit", _p99_of_burst), "", AT_MOST_P99),
        ("requests per status", paired(rounds, "limit", _requests), "", AT_MOST_REQUESTS),
        ("cpu_ms above limit's", paired(rounds, "limit", _cpu_above), "", AT_MOST_CPU_MS),
    ]
    rows += [
        (f"default/{name}", paired(rounds, name, rate_ratio), "", "")
        for name in ("upstream_policy", "go", "go_default_qps")
        if name in rounds
    ]
    title = f"{way}, pairs of {len(rounds['default'])} rounds"
    print(f"\n{title:<28}{'median':>8}{'quartiles':>14}{'at least':>10}{'at most':>10}")
    for name, value, minimum, maximum in rows:
        quartiles = f"{value.low:.2f}-{value.high:.2f}"
        line = f"{name:<26}{value.median:>10.2f}{quartiles:>14}{minimum:>10}{maximum:>10}"
        print(line.rstrip())


def _p99_of_burst(default: Figures, limit: Figures) -> float:
    return default.p99_ms / 1e3 / (PODS / limit.per_s)


def _requests(default: Figures, _: Figures) -> float:
    return default.requests


def _cpu_above(default: Figures, limit: Figures) -> float:
    return default.cpu_ms - limit.cpu_ms


def main() -> None:
    """Measure, print tables and write the figures."""
    available = contenders(kubelet_program())
    written = {}
    try:
        with running_server() as accesses:
            asyncio.run(fill(accesses(""), sorted({contender.node for contender in available})))
            for way, delay_seconds in WAYS.items():
                with way_to(accesses("").url, delay_seconds) as server:
                    rounds = measure(way, server, accesses, available)
                print_contenders(way, rounds)
                print_verdict(way, rounds)
                written[way] = results(rounds)
    except MissingBinariesError as error:
        sys.exit(f"bench-sync: {error}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(written, indent=1))


if __name__ == "__main__":
    main()
