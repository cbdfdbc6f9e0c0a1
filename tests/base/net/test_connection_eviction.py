"""The choice of connections to evict, as tables and as properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.base.net.connection_eviction import (
    HANDSHAKE_SECONDS,
    ConnectionStage,
    ConnectionTable,
    StageLimits,
    choose_eviction,
)

LIMITS = StageLimits(silent=2, handshake=2, head=2, unauthenticated=2, authenticated=2)
IDLE, ACTIVE = False, True


@pytest.mark.parametrize(
    ("stage", "connections", "evicted"),
    [
        (ConnectionStage.SILENT, [], None),
        (ConnectionStage.SILENT, [("old", IDLE), ("new", IDLE)], "old"),
        (ConnectionStage.UNAUTHENTICATED, [("old", ACTIVE), ("new", IDLE)], "new"),
        (ConnectionStage.UNAUTHENTICATED, [("old", ACTIVE), ("new", ACTIVE)], "old"),
        (ConnectionStage.AUTHENTICATED, [("old", ACTIVE), ("new", IDLE)], "new"),
        (ConnectionStage.AUTHENTICATED, [("old", ACTIVE), ("new", ACTIVE)], None),
    ],
)
def test_the_oldest_idle_one_is_evicted_and_no_active_authenticated_one(
    stage: ConnectionStage, connections: list[tuple[str, bool]], evicted: str | None
) -> None:
    assert choose_eviction(stage, connections) == evicted


def test_a_flood_in_one_stage_takes_no_places_in_another() -> None:
    table: ConnectionTable[str] = ConnectionTable(LIMITS, 10)
    for name, stage in (
        ("tls", ConnectionStage.HANDSHAKE),
        ("asks", ConnectionStage.HEAD),
        ("asked", ConnectionStage.UNAUTHENTICATED),
    ):
        table.add(name, 0)
        table.advance(name, stage)
    evicted = [table.add(f"silent-{number}", 1) for number in range(4)]
    assert evicted == [None, None, "silent-0", "silent-1"]
    assert table.connections() == ["tls", "asks", "asked", "silent-2", "silent-3"]


def test_a_connection_that_was_evicted_pushes_out_no_other() -> None:
    table: ConnectionTable[str] = ConnectionTable(LIMITS, 10)
    for name in ("a", "b", "c"):
        table.add(name, 0)
    assert table.advance("a", ConnectionStage.AUTHENTICATED) == "a"
    assert table.connections() == ["b", "c"]


def test_one_more_authenticated_client_has_no_slot_while_all_are_active() -> None:
    table: ConnectionTable[str] = ConnectionTable(LIMITS, 10)
    for name in ("a", "b", "c"):
        table.add(name, 0)
        table.advance(name, ConnectionStage.UNAUTHENTICATED)
        table.set_active(name, active=True)
        assert table.advance(name, ConnectionStage.AUTHENTICATED) == ("c" if name == "c" else None)
    assert table.connections(ConnectionStage.UNAUTHENTICATED) == ["c"]
    table.set_active("b", active=False)
    assert table.advance("c", ConnectionStage.AUTHENTICATED) == "b"


def test_the_deadline_counts_from_accept_and_ends_with_the_first_request() -> None:
    table: ConnectionTable[str] = ConnectionTable(LIMITS, 10)
    for name in ("drips", "asks"):
        table.add(name, 100)
        table.advance(name, ConnectionStage.HEAD)
    table.advance("asks", ConnectionStage.UNAUTHENTICATED)
    table.add("young", 105)
    assert table.find_overdue(109.9) == []
    assert table.find_overdue(110) == ["drips"]


def test_none_is_accepted_while_it_would_end_a_handshake_that_has_just_begun() -> None:
    table: ConnectionTable[str] = ConnectionTable(LIMITS, 10)
    for name in ("a", "b"):
        assert table.can_accept(100)
        table.add(name, 100)
        table.advance(name, ConnectionStage.HANDSHAKE)
    assert not table.can_accept(100 + HANDSHAKE_SECONDS / 2)
    assert table.can_accept(100 + HANDSHAKE_SECONDS)
    table.advance("a", ConnectionStage.HEAD)
    assert table.can_accept(100)


@pytest.mark.parametrize(
    ("descriptors", "total"), [(64, 32), (256, 128), (1024, 512), (2048, 1024), (10**6, 1024)]
)
def test_limits_follow_the_descriptors_of_the_process(descriptors: int, total: int) -> None:
    limits = StageLimits(silent=200, handshake=100, head=100, unauthenticated=100, authenticated=12)
    assert limits.scaled(descriptors).total == total


def test_a_stage_that_a_port_does_not_have_stays_without_places() -> None:
    limits = StageLimits(silent=16, head=8, unauthenticated=8).scaled(512)
    assert (limits.handshake, limits.authenticated, limits.total) == (0, 0, 16)


Step = tuple[int, ConnectionStage | bool]
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(st.integers(0, 15), st.sampled_from(list(ConnectionStage)) | st.booleans()),
    max_size=100,
)


@given(STEPS)
def test_no_stage_exceeds_its_limit_and_active_authenticated_ones_stay(
    steps: list[Step],
) -> None:
    table: ConnectionTable[int] = ConnectionTable(LIMITS, 10)
    active: set[int] = set()
    for key, step in steps:
        if isinstance(step, bool):
            table.set_active(key, active=step)
            (active.add if step and key in table.connections() else active.discard)(key)
            continue
        protected = active & set(table.connections(ConnectionStage.AUTHENTICATED))
        if step is ConnectionStage.SILENT and key not in table.connections():
            evicted = table.add(key, 0)
        else:
            evicted = table.advance(key, step)
        if evicted is not None and evicted not in table.connections():
            active.discard(evicted)
        assert evicted not in protected
        assert protected <= set(table.connections(ConnectionStage.AUTHENTICATED))
        for stage, limit in LIMITS.by_stage().items():
            assert len(table.connections(stage)) <= limit
