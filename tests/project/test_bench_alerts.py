"""The benchmark of alerts runs, and writes what it promises."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"{name}_benchmark", BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    return bench


def test_the_alerts_benchmark_writes_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = load("alerts")
    monkeypatch.setattr(bench, "PODS", 100)
    monkeypatch.setattr(bench, "ROUNDS", 1)
    monkeypatch.setattr(bench, "AT_MOST", {"tell_us": 1e9})
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "alerts.json")
    bench.main()
    figures = json.loads(bench.RESULTS.read_text())
    assert figures["first_alerts"] == 2 * 3
    assert figures["tell_us"] > figures["facts_us"] > 0


@pytest.mark.slow
def test_the_benchmark_of_many_pods_asks_the_default_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = load("alerts_watch")
    monkeypatch.setattr(bench, "PODS", 100)
    monkeypatch.setattr(bench, "SECONDS", 1.0)
    monkeypatch.setattr(bench, "WARM_SECONDS", 0.2)
    monkeypatch.setattr(bench, "AT_MOST", {"idle_percent": 1e9, "changes_percent": 1e9})
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "alerts_watch.json")
    bench.main()
    figures = json.loads(bench.RESULTS.read_text())
    crash, not_ready = 2, 2
    assert figures["idle_alerts"] == crash + not_ready
    assert figures["changes_percent"] > figures["changes_without_percent"]
