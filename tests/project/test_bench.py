"""Each benchmark runs, and writes its figures; how fast things are is not tested."""

import importlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the client needs podstatus[agent]")

from podstatus.testing.apiserver import ApiServerProcess
from podstatus.testing.servers.access import ServerAccess

BENCH = Path(__file__).parents[2] / "bench"
MAX_RATIO = 8.0
"""For 20 times as many containers; what is quadratic comes to 20, a busy machine not to this."""

Load = Callable[..., Any]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads a benchmark by name, with these constants."""
    monkeypatch.syspath_prepend(str(BENCH))

    def load(name: str, **constants: object) -> Any:
        bench = importlib.import_module(name)
        for constant, value in {"RESULTS": tmp_path / "results.json", **constants}.items():
            monkeypatch.setattr(bench, constant, value)
        return bench

    return load


def figures(bench: Any) -> dict[str, Any]:
    bench.main()
    written: dict[str, Any] = json.loads(bench.RESULTS.read_text())
    return written


def test_the_statuses_benchmark(load: Load, capsys: pytest.CaptureFixture[str]) -> None:
    written = figures(load("statuses", PODS=3, ROUNDS=1, NODES=(2, 4)))
    per_call = {f"{name}_us" for name in ("decode", "changed", "noop", "patch", "sync")}
    ratios = {f"{name}_ratio" for name in ("changed", "noop", "patch", "sync", "plan")}
    plans = {"plan_us_per_pod_2", "plan_us_per_pod_4"}
    assert written.keys() == per_call | ratios | plans | {"bytes_per_pod", "import_s"}
    assert all(value > 0 for value in written.values())
    printed = capsys.readouterr().out
    assert [name for name in written if name not in printed] == []


def test_the_alerts_benchmark(load: Load) -> None:
    written = figures(load("alerts", PODS=100, ROUNDS=1, AT_MOST={"tell_us": 1e9}))
    assert written["first_alerts"] == 2 * 3
    assert written["tell_us"] > written["facts_us"] > 0


def test_the_benchmark_of_many_nodes(load: Load) -> None:
    bench = load("nodes", NODE_COUNT=20, ROUNDS=1, SECONDS=10, AT_MOST={})
    written = figures(bench)
    assert written["controllers_percent"] > 0
    assert written["outage_cpu_s"] > 0


@pytest.mark.slow
def test_the_benchmark_of_commands(load: Load) -> None:
    written = figures(load("cli", ROUNDS=1, LIMITS={}))
    assert written.keys() >= {"python", "version", "help", "completion", "get_pods"}
    assert written["get_pods"] > written["python"] > 0


@pytest.mark.slow
def test_the_benchmark_of_many_pods_evaluates_the_default_rules(load: Load) -> None:
    bounds = {"idle_percent": 1e9, "changes_percent": 1e9}
    bench = load("alerts_watch", PODS=100, SECONDS=1.0, WARM_SECONDS=0.2, AT_MOST=bounds)
    written = figures(bench)
    crash, not_ready = 2, 2
    assert written["idle_alerts"] == crash + not_ready
    assert written["changes_percent"] > written["changes_without_percent"]


def test_the_containers_benchmark(load: Load) -> None:
    assert "stop order" in figures(load("containers", SIZES=(2, 4), ROUNDS=1))


def test_no_step_of_a_pod_costs_more_for_each_container_of_a_large_pod(load: Load) -> None:
    bench = load("containers", SIZES=(100, 2000))
    steps = bench.measure()
    assert "status" in steps
    assert {name: costs for name, costs in steps.items() if bench.ratio(costs) > MAX_RATIO} == {}


@pytest.mark.slow
def test_the_sync_benchmark_has_null_for_a_go_that_is_not_there(load: Load, tmp_path: Path) -> None:
    @contextmanager
    def embedded() -> Iterator[Callable[[str], ServerAccess]]:
        server = ApiServerProcess(tmp_path / "server")
        access = server.start()
        yield lambda _: access
        server.stop()

    of_go = {"go_per_s", "go_default_qps_per_s", "go_p99_ms"}
    constants = {"running_server": embedded, "kubelet_program": lambda: None}
    written = figures(load("sync", PODS=4, ROUNDS=2, CONNECTIONS=(2,), **constants))
    assert written.keys() == {"loopback", "rtt10"}
    for of_network in written.values():
        assert {name for name, value in of_network.items() if value is None} == of_go
        assert all(value > 0 for name, value in of_network.items() if name not in of_go)
    # Two requests one after another, each 10 ms there and back.
    assert written["rtt10"]["upstream_policy_per_s"] < 1 / 0.020


def test_a_round_is_compared_with_the_best_limit_of_the_same_round(load: Load) -> None:
    bench = load("sync")

    def rounds(*rates: float) -> list[Any]:
        return [bench.Figures(per_s=rate, p99_ms=1, requests=1, cpu_ms=1) for rate in rates]

    contenders = {f"limit_{number}": rounds(1, 1, 1) for number in bench.CONNECTIONS}
    contenders |= {"limit_8": rounds(100, 50, 10), "limit_64": rounds(50, 200, 20)}
    seen = bench.with_limit(contenders | {"default": rounds(80, 190, 20), "go": rounds(40)})
    ratios = bench.paired(seen, "limit", bench.rate_ratio)
    # 0.8, 0.95 and 1 of the best in their rounds; the ratio of the medians is 0.8.
    assert (ratios.median, ratios.low, ratios.high) == pytest.approx((0.95, 0.875, 0.975))
    once = bench.paired(seen, "go", bench.rate_ratio)
    assert (once.median, once.low, once.high) == (2, 2, 2)
