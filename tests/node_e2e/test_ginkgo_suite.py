"""ginkgo's report and its regular expressions."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.node_e2e.ginkgo_suite import SpecReport, focus_on, read_report


def spec(texts: list[str], leaf: str, state: str, kind: str = "It") -> dict[str, Any]:
    return {
        "ContainerHierarchyTexts": texts,
        "LeafNodeType": kind,
        "LeafNodeText": leaf,
        "State": state,
        "RunTime": 2_500_000_000,
        "Unknown": {},
    }


def write(path: Path, *specs: dict[str, Any]) -> Path:
    path.write_text(json.dumps([{"SpecReports": specs}, {"SpecReports": None}]))
    return path


def test_the_report_has_the_tests_that_ran(tmp_path: Path) -> None:
    path = write(
        tmp_path / "report.json",
        spec(["[sig-node] Pods"], "should run [Conformance]", "passed"),
        spec(["[sig-node] Pods"], "should fail", "timedout"),
        spec(["[sig-node] Pods"], "was not selected", "skipped"),
        spec([], "", "passed", kind="SynchronizedBeforeSuite"),
    )
    assert [(report.name, report.passed) for report in read_report(path)] == [
        ("[sig-node] Pods should run [Conformance]", True),
        ("[sig-node] Pods should fail", False),
    ]


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("[sig-node] Pods", "sig-node Pods"),
        ("[sig-node] InitContainer [NodeConformance]", "sig-node InitContainer"),
        ("[sig-node] Sysctls [LinuxOnly] [NodeConformance]", "sig-node Sysctls"),
    ],
)
def test_the_family_is_the_outermost_container(text: str, family: str) -> None:
    assert SpecReport(leaf_node_type="It", container_hierarchy_texts=[text]).family == family


def test_the_focus_matches_whole_names() -> None:
    names = ["[sig-node] a should *not* (b)", 'c "$d" 1.5']
    focus = re.compile(focus_on(names))
    suite = "Kubernetes e2e suite"
    assert all(focus.search(f"{suite} {name}") for name in names)
    assert not focus.search(f"{suite} {names[1]} [Serial]")
    assert not focus.search(f"{suite} [sig-node] a should not (b)")
