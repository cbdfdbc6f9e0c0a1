"""The benchmark of the sync runs, and its parts do what its figures rest on."""

import asyncio
import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

pytest.importorskip("aiohttp", reason="the client needs podstatus[agent]")

from podstatus import Pod, from_document
from podstatus.testing.apiserver import ApiServerProcess
from podstatus.testing.servers.access import ServerAccess

BENCH = Path(__file__).parents[2] / "bench"
FIGURES = {
    "limit_per_s",
    "default_per_s",
    "default_of_limit",
    "default_of_limit_low",
    "default_of_limit_high",
    "upstream_policy_per_s",
    "go_per_s",
    "go_default_qps_per_s",
    "default_p99_ms",
    "go_p99_ms",
    "requests_per_status",
    "cpu_ms_per_status",
    "limit_cpu_ms_per_status",
}
DELAY = 0.25
"""Seconds: a busy machine may take its time, but not so much for each part."""
OF_GO = {"go_per_s", "go_default_qps_per_s", "go_p99_ms"}

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Modules of the benchmark by name."""
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module


@pytest.mark.slow
def test_the_benchmark_writes_its_figures_and_null_for_a_go_that_is_not_there(
    load: Load,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bench = load("sync")

    @contextmanager
    def embedded() -> Iterator[Callable[[str], ServerAccess]]:
        server = ApiServerProcess(tmp_path / "server")
        access = server.start()
        yield lambda _: access
        server.stop()

    monkeypatch.setattr(bench, "running_server", embedded)
    monkeypatch.setattr(bench, "kubelet_program", lambda: None)
    monkeypatch.setattr(bench, "PODS", 4)
    monkeypatch.setattr(bench, "ROUNDS", 2)
    monkeypatch.setattr(bench, "CONNECTIONS", (2,))
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "results" / "sync.json")
    bench.main()
    written = json.loads(bench.RESULTS.read_text())
    assert written.keys() == {"loopback", "rtt10"}
    for figures in written.values():
        assert figures.keys() == FIGURES
        assert {name for name, value in figures.items() if value is None} == OF_GO
        assert all(value > 0 for name, value in figures.items() if name not in OF_GO)
    # Two requests one after another, each 10 ms there and back.
    assert written["rtt10"]["upstream_policy_per_s"] < 1 / 0.020
    printed = capsys.readouterr().out
    for words in ("limit_2", "default/limit", "p99/limit's burst", "cpu_ms above limit's"):
        assert printed.count(words) == 2


def test_a_round_is_compared_with_the_best_limit_of_the_same_round(load: Load) -> None:
    bench = load("sync")

    def rounds(*rates: float) -> list[msgspec.Struct]:
        return [bench.Figures(per_s=rate, p99_ms=1, requests=1, cpu_ms=1) for rate in rates]

    contenders = {f"limit_{number}": rounds(1, 1, 1) for number in bench.CONNECTIONS}
    contenders |= {"limit_8": rounds(100, 50, 10), "limit_64": rounds(50, 200, 20)}
    seen = bench.with_limit(contenders | {"default": rounds(80, 190, 20), "go": rounds(40)})
    ratios = bench.paired(seen, "limit", bench.rate_ratio)
    # 0.8, 0.95 and 1 of the best in their rounds; the ratio of the medians is 0.8.
    assert (ratios.median, ratios.low, ratios.high) == pytest.approx((0.95, 0.875, 0.975))
    once = bench.paired(seen, "go", bench.rate_ratio)
    assert (once.median, once.low, once.high) == (2, 2, 2)


async def test_the_limit_sends_what_a_manager_sends(load: Load) -> None:
    limit, objects = load("peers.limit"), load("peers.node_objects")
    documents = [
        objects.pod_document("node", number) | {"status": objects.status_document(number)}
        for number in range(3)
    ]
    for number, document in enumerate(documents):
        document["metadata"]["uid"] = f"uid-{number}"
    pods = [from_document(document, Pod) for document in documents]
    recorded = await limit.record_patches(pods, "https://server")
    for ready, says in ((True, "True"), (False, "False")):
        urls = [str(url) for url, _ in recorded[ready]]
        paths = [f"/api/v1/namespaces/default/pods/node-{number}/status" for number in range(3)]
        assert urls == [f"https://server{path}" for path in paths]
        patches = [msgspec.json.decode(body) for _, body in recorded[ready]]
        assert [patch["metadata"] for patch in patches] == [{"uid": f"uid-{n}"} for n in range(3)]
        conditions = {c["type"]: c for c in patches[0]["status"]["conditions"]}
        assert {c["status"] for c in conditions.values()} == {says}
        assert conditions.keys() == {"Ready", "ContainersReady"}
        assert all("lastTransitionTime" in c for c in conditions.values())
        (container,) = patches[0]["status"]["containerStatuses"]
        assert container["ready"] is ready


def test_an_observed_node_tells_when_each_pod_came_to_be_as_it_is(load: Load) -> None:
    observer = load("peers.observer")

    def take(name: str, says: str, now: int) -> None:
        condition = {"type": "Ready", "status": says}
        pod = {"metadata": {"name": name}, "status": {"conditions": [condition]}}
        node.take(observer.read_pod(msgspec.json.encode(pod)), now)

    node = observer.Node()
    take("a", "False", 1)
    take("b", "False", 1)
    assert node.are_all(ready=False)
    take("a", "True", 2)
    take("a", "True", 3)
    assert not node.are_all(ready=True)
    assert not node.are_all(ready=False)
    take("b", "True", 4)
    assert node.are_all(ready=True)
    assert node.since() == [2, 4]
    take("a", "False", 5)
    take("b", "False", 6)
    assert node.are_all(ready=False)
    assert node.since() == [5, 6]


async def test_what_is_delayed_comes_late_in_order_and_to_its_end(load: Load) -> None:
    process, proxy = load("peers.process"), load("peers.delay_proxy")
    await _pass_through(process, proxy)


async def _pass_through(process: ModuleType, proxy: ModuleType) -> None:
    said = [bytes([number]) * 70_000 for number in range(20)]

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
        writer.close()
        await writer.wait_closed()
        ended.set()

    ended = asyncio.Event()
    server = await asyncio.start_server(echo, "127.0.0.1")
    peer = process.Peer([sys.executable, "-m", "peers.delay_proxy"])
    way = proxy.Way(server.sockets[0].getsockname()[1], DELAY)
    entrance = peer.ask(way, proxy.Entrance)
    reader, writer = await asyncio.open_connection("127.0.0.1", entrance.port)
    began = time.monotonic()
    for data in said:
        writer.write(data)
    heard = await reader.readexactly(sum(map(len, said)))
    took = time.monotonic() - began
    # Not one delay for each part: they are under way at once.
    assert 2 * DELAY <= took < 2 * DELAY * len(said)
    assert heard == b"".join(said)
    writer.close()
    await writer.wait_closed()
    await ended.wait()
    peer.close()
    server.close()
