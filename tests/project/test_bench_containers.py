"""A container costs the same in a large pod as in a small one."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
MAX_RATIO = 8.0
"""For 20 times as many containers; what is quadratic comes to 20, a busy machine not to this."""


@pytest.fixture
def bench() -> ModuleType:
    """The benchmark, loaded from its file."""
    path = ROOT / "bench" / "containers.py"
    spec = importlib.util.spec_from_file_location("containers_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_step_of_a_pod_costs_more_for_each_container_of_a_large_pod(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "SIZES", (100, 2000))
    steps = bench.measure()
    assert "status" in steps
    assert {name: costs for name, costs in steps.items() if bench.ratio(costs) > MAX_RATIO} == {}


def test_the_benchmark_writes_its_figures(
    bench: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bench, "SIZES", (2, 4))
    monkeypatch.setattr(bench, "ROUNDS", 1)
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "results" / "containers.json")
    bench.main()
    printed = capsys.readouterr().out
    assert "stop order" in bench.RESULTS.read_text()
    assert "stop order" in printed
