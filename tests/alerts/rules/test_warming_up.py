"""Which facts of a node are incomplete after a start."""

from typing import Any

import pytest
from msgspec import structs

from podstatus.alerts.rules.fact_variables import FACTS, POD_WINDOW_FACTS, warming_up_node_facts
from podstatus.observe.ports import Freshness, NodeSummary, SyncState
from podstatus.observe.summary.node_load import LoadAverage, NodeLoad, ResourceLoad

SECOND = 1_000_000_000
USED = ResourceLoad(used_fraction=0.3)
LOADED = ResourceLoad(
    used_fraction=0.1,
    requested_fraction=0.2,
    averages={"5m": LoadAverage(used=0.1, used_fraction=0.1, covered_seconds=300.0)},
)
LOAD = NodeLoad(cpu=LOADED, memory=LOADED, disk=USED, inodes=USED, pids=USED)
NODE = NodeSummary(name="n", lease_age_seconds=1.0, load=LOAD)
KNOWN = Freshness(clock_skew_seconds=0.0)
SENDING = {f"sync.{it}" for it in ("unsent", "oldestUnsentSeconds", "inFlight", "quarantined")}


def young(seconds: int, *, node: Any = None, known: Any = None, unsent: int = 0) -> set[str]:
    found = warming_up_node_facts(
        structs.replace(NODE, **(node or {})),
        SyncState(unsent=unsent),
        structs.replace(KNOWN, **(known or {})),
        seconds * SECOND,
    )
    return set(found)


def test_they_are_facts() -> None:
    names = {fact.name for facts in FACTS.values() for fact in facts}
    nothing = warming_up_node_facts(
        NodeSummary(name="n"), SyncState(), Freshness(server_reachable=False), 0
    )
    assert names >= POD_WINDOW_FACTS | nothing
    assert len(nothing) == 18


def test_when_all_is_known_only_the_forecast_needs_ten_minutes() -> None:
    assert young(60) == young(599) == {"node.diskFullInSeconds"}
    assert young(600) == set()


def test_what_is_sent_is_known_after_a_minute_or_when_nothing_waits_any_more() -> None:
    assert young(59) >= SENDING
    assert young(599, unsent=1) >= SENDING
    assert not young(60) & SENDING
    assert not young(600, unsent=1)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"node": {"lease_age_seconds": None}}, "node.leaseAgeSeconds"),
        ({"known": {"clock_skew_seconds": None}}, "node.clockSkewSeconds"),
    ],
)
def test_facts_of_the_server_warm_up_until_it_answers(changed: dict[str, Any], name: str) -> None:
    assert young(86_400, **changed) == {name}


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        (
            {"node": {"load": structs.replace(LOAD, disk=ResourceLoad())}},
            "node.diskUsedFraction",
        ),
        (
            {"node": {"load": structs.replace(LOAD, cpu=structs.replace(LOADED, averages={}))}},
            "node.cpuUsedFraction5m",
        ),
        ({"known": {"server_reachable": False}}, "sync.serverAgeSeconds"),
    ],
)
def test_what_may_never_be_known_is_young_for_ten_minutes(
    changed: dict[str, Any], name: str
) -> None:
    assert name in young(599, **changed)
    assert name not in young(60)
    assert young(600, **changed) == set()
