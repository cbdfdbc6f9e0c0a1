"""The decisions against those of the Go eviction manager, recorded by tools/eviction-oracle."""

import gzip
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from podstatus.testing.replay.answers import encode_result
from podstatus.testing.replay.vectors import replay_vector

RECORDED = Path(__file__).parents[2] / "conformance" / "vectors-eviction.jsonl.gz"
FAMILIES = {
    "ParseThresholdConfig": 420,
    "UpdateContainerFsThresholds": 120,
    "makeSignalObservations": 120,
    "thresholdsMet": 420,
    "rankPods": 480,
    "evictionMessage": 260,
    "localStorageEviction": 320,
    "Admit": 160,
    "synchronize": 420,
}


@cache
def recorded() -> dict[str, list[dict[str, Any]]]:
    families: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            families[record["fn"]].append(record)
    return families


def test_the_recording_has_no_other_family() -> None:
    assert {name: len(cases) for name, cases in recorded().items()} == FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_is_decided_as_by_the_kubelet(family: str) -> None:
    for number, case in enumerate(recorded()[family]):
        decided = json.loads(encode_result(replay_vector(case)))
        assert decided == case["result"], f"{family} {number}: {json.dumps(case['args'])[:2000]}"


def test_the_scenarios_reach_what_a_cycle_can_do() -> None:
    steps = [step for case in recorded()["synchronize"] for step in case["result"]]
    outcomes = [outcome for step in steps for outcome in step["outcomes"]]
    evictions = [eviction for outcome in outcomes for eviction in outcome.get("evictions", ())]
    assert sum(len(step["outcomes"]) > 1 for step in steps) > 50, "several possible outcomes"
    assert sum(len(step["conditions"]) > 1 for step in steps) > 50, "two pressures at once"
    assert sum("reclaimed" in it and "evictions" not in it for it in outcomes) > 10
    assert {eviction["gracePeriod"] for eviction in evictions} >= {-1, 0, 1, 10, 30, 60}
