"""The benchmarks run, and write what they promise; how fast things are is not tested."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench() -> ModuleType:
    """The benchmark of the core, loaded from its file."""
    spec = importlib.util.spec_from_file_location(
        "statuses_benchmark", ROOT / "bench" / "statuses.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_statuses_benchmark_writes_its_figures(
    bench: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bench, "PODS", 3)
    monkeypatch.setattr(bench, "ROUNDS", 1)
    monkeypatch.setattr(bench, "NODES", (2, 4))
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "results" / "core.json")
    bench.main()
    figures = json.loads(bench.RESULTS.read_text())
    per_call = {f"{name}_us" for name in ("decode", "changed", "noop", "patch", "sync")}
    ratios = {f"{name}_ratio" for name in ("changed", "noop", "patch", "sync", "plan")}
    plans = {"plan_us_per_pod_2", "plan_us_per_pod_4"}
    assert figures.keys() == per_call | ratios | plans | {"bytes_per_pod", "import_s"}
    assert all(value > 0 for value in figures.values())
    printed = capsys.readouterr().out
    assert [name for name in figures if name not in printed] == []


def test_what_the_statuses_benchmark_calls_a_change_is_one(bench: ModuleType) -> None:
    rig = bench.Rig(3)
    versions = [entry.version for entry in rig.manager.entries().values()]
    rig.report()
    assert [entry.version for entry in rig.manager.entries().values()] == versions
    rig.report_change()
    assert [entry.version for entry in rig.manager.entries().values()] == [v + 1 for v in versions]
    rig.sync()
    assert sorted(rig.manager.sent_versions().values()) == sorted(v + 1 for v in versions)
    rig.close()
