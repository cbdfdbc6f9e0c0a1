"""The load of a node as text."""

from typing import Any

import pytest

from podstatus.cli.render.node_load import load_lines, nodes_line, wide_cells
from podstatus.observe.ports import NodeSummary
from podstatus.observe.summary.node_load import LoadAverage, NodeLoad, ResourceLoad

GI = 2.0**30


def average(fraction: float, seconds: float) -> LoadAverage:
    return LoadAverage(used=4 * fraction, used_fraction=fraction, covered_seconds=seconds)


CPU = ResourceLoad(
    used=1.3104,
    requested=0.75,
    allocatable=4.0,
    used_fraction=0.3276,
    requested_fraction=0.1875,
    averages={"1m": average(0.3, 60), "5m": average(0.22, 300), "15m": average(0.2, 412)},
)
MEMORY = ResourceLoad(used=3.1 * GI, requested=GI, allocatable=16 * GI, used_fraction=0.19375)
LOAD = NodeLoad(
    cpu=CPU,
    memory=MEMORY,
    pods=ResourceLoad(used=11.0, allocatable=110.0, used_fraction=0.1),
    age_seconds=3.0,
)


def node(name: str, cpu: float | None = None, *, ready: bool = True) -> NodeSummary:
    load = NodeLoad(cpu=ResourceLoad(used_fraction=cpu))
    return NodeSummary(name=name, ready=ready, load=load)


def test_a_description_has_a_row_for_each_known_resource() -> None:
    assert [line.rstrip() for line in load_lines(LOAD)] == [
        "Load:",
        "  (An average with a time covers only this part of its window.)",
        "  Resource  Used          1m   5m   15m               Requested   Allocatable",
        "  cpu       1310m (33%)   30%  22%  20% (6 min 52 s)  750m (19%)  4000m",
        "  memory    3174Mi (19%)  -    -    -                 1024Mi      16.0Gi",
        "  pods      11 (10%)      -    -    -                 -           110",
    ]


def test_a_gap_is_mentioned_and_its_usage_is_unknown() -> None:
    in_gap = NodeLoad(cpu=ResourceLoad(requested=0.5, allocatable=4.0), age_seconds=125.0)
    assert list(load_lines(in_gap)) == [
        "Load:",
        "  (Usage was last measured 2 min 5 s ago.)",
        "  Resource  Used       1m  5m  15m  Requested  Allocatable",
        "  cpu       <unknown>  -   -   -    500m       4000m",
    ]
    assert list(load_lines(NodeLoad())) == ["Load:", "  (Usage has not been measured yet.)"]


@pytest.mark.parametrize(
    ("load", "cells"),
    [
        (LOAD, ("1310m (33%)", "3174Mi (19%)", "<unknown>")),
        (None, ("<unknown>",) * 3),
        (NodeLoad(cpu=ResourceLoad(used=0.5)), ("500m", "<unknown>", "<unknown>")),
    ],
)
def test_a_table_has_what_is_used(load: NodeLoad | None, cells: tuple[str, ...]) -> None:
    assert wide_cells(load) == cells


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        (
            [NodeSummary(name="a", ready=True, pods=11, load=LOAD)],
            "node a: cpu 33% (1m 30%, 5m 22%), memory 19%, disk <unknown>, pods 11 of 110",
        ),
        (
            [node("a", ready=False)],
            "node a is not ready: cpu <unknown>, memory <unknown>, disk <unknown>, pods 0",
        ),
        (
            [node("a", 0.1), node("b", 0.91), node("c", ready=False)],
            "3 nodes, 2 ready; most used: cpu b 91%, memory <unknown>, disk <unknown>",
        ),
    ],
)
def test_one_line_has_the_load_of_one_node_or_the_most_loaded(nodes: Any, line: str) -> None:
    assert nodes_line(nodes) == line
