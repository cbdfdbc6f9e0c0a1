from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStateRunning,
    PodCondition,
    PodStatus,
)
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.startup_measurement import (
    DONE,
    BusyTime,
    PodStartup,
    StartupState,
    has_pod_started,
    is_pod_unschedulable,
    is_stateful_pod,
    measure_startup,
)
from podstatus.testing.builders import ended, make_pod, make_status, running, waiting

SECOND = 1_000_000_000


def spans(*events: tuple[str, int]) -> BusyTime:
    """Apply `("start", 3)`, `("end", 5)` and the repeatable end `("again", 5)`."""
    known = BusyTime()
    for kind, at in events:
        if kind == "start":
            known = known.started(Time(at))
        elif kind == "end":
            known = known.finished(Time(at))
        else:
            known = known.reported_finished(Time(at))
    return known


# Busy time


@pytest.mark.parametrize(
    ("events", "total"),
    [
        pytest.param([], 0, id="nothing"),
        pytest.param([("start", 2), ("end", 5)], 3, id="one"),
        pytest.param([("start", 2)], 0, id="what has not ended does not count"),
        pytest.param([("end", 5)], 0, id="an end without a start"),
        pytest.param([("start", 1), ("end", 2), ("start", 5), ("end", 9)], 5, id="with a gap"),
        pytest.param([("start", 1), ("end", 2), ("start", 2), ("end", 9)], 8, id="in a row"),
        pytest.param(
            [("start", 10), ("start", 11), ("start", 14), ("end", 16), ("end", 18), ("end", 20)],
            10,
            id="overlapping",
        ),
        pytest.param([("start", 1), ("start", 3), ("end", 4), ("end", 9)], 8, id="nested"),
        pytest.param([("start", 5), ("end", 8), ("start", 7), ("end", 9)], 4, id="clock set back"),
        pytest.param([("start", 5), ("end", 3)], 0, id="an end before its start"),
        pytest.param(
            [("start", 5), ("end", 9), ("start", 2), ("end", 4), ("start", 8), ("end", 10)],
            5,
            id="what lies before all that is accounted for adds nothing",
        ),
    ],
)
def test_time_under_way_counts_once(events: list[tuple[str, int]], total: int) -> None:
    assert spans(*events).total == total


@pytest.mark.parametrize(
    ("events", "total"),
    [
        pytest.param([("start", 2), ("again", 4), ("again", 4)], 2, id="reported twice"),
        pytest.param(
            [("start", 2), ("start", 6), ("again", 4), ("again", 4), ("again", 9)],
            5,
            id="the next starts before the end is reported",
        ),
        pytest.param(
            [("start", 2), ("again", 1), ("start", 6), ("again", 1), ("again", 9), ("again", 9)],
            7,
            id="one so short that it ends before its start is reported",
        ),
        pytest.param([("start", 2), ("again", 2), ("start", 6), ("again", 9)], 3, id="at once"),
    ],
)
def test_an_end_that_is_reported_repeatedly_counts_once(
    events: list[tuple[str, int]], total: int
) -> None:
    assert spans(*events).total == total


@given(st.lists(st.tuples(st.sampled_from(["start", "end"]), st.integers(0, 3)), max_size=60))
def test_it_is_the_time_covered_by_spans_that_end_oldest_first(
    steps: list[tuple[str, int]],
) -> None:
    now, events = 0, list[tuple[str, int]]()
    for kind, later in steps:
        now += later
        events.append((kind, now))
    waiting_starts, covered = list[int](), set[int]()
    for kind, at in events:
        if kind == "start":
            waiting_starts.append(at)
        elif waiting_starts:
            covered.update(range(waiting_starts.pop(0), at))
    assert spans(*events).total == len(covered)


@given(st.lists(st.tuples(st.sampled_from(["start", "end", "again"]), st.integers(0, 9))))
def test_whatever_the_clock_does_time_is_only_ever_added(events: list[tuple[str, int]]) -> None:
    totals = [spans(*events[:n]).total for n in range(len(events) + 1)]
    assert totals == sorted(totals)
    assert 0 <= totals[-1] <= 9


def test_starts_that_never_end_do_not_fill_the_memory() -> None:
    known = spans(*(("start", at) for at in range(640)))
    assert len(known.open_starts) == 64
    assert known.finished(Time(1000)).total == 1000


# Pod properties


def not_since(name: str) -> Any:
    return structs.replace(running(name), state=ContainerState(running=ContainerStateRunning()))


@pytest.mark.parametrize(
    ("containers", "started"),
    [
        pytest.param([running("a")], True, id="runs"),
        pytest.param([running("a"), running("b", ready=False)], True, id="need not be ready"),
        pytest.param([running("a"), waiting("b")], False, id="one waits"),
        pytest.param([running("a"), ended("b")], False, id="one has ended"),
        pytest.param([not_since("a")], False, id="start time unknown"),
        pytest.param([], False, id="no container is shown"),
    ],
)
def test_a_pod_has_started_when_every_container_is_shown_running(
    containers: list[Any], started: bool
) -> None:
    assert has_pod_started(make_pod(status=make_status("Running", *containers))) is started


def with_volumes(*volumes: dict[str, Any]) -> Pod:
    return from_document({"spec": {"volumes": list(volumes), "containers": None}}, Pod)


@pytest.mark.parametrize(
    ("sources", "stateful"),
    [
        pytest.param([], False, id="none"),
        pytest.param([{"secret": {}}], False, id="secret"),
        pytest.param([{"configMap": {}}], False, id="config map"),
        pytest.param([{"downwardAPI": {}}], False, id="downward API"),
        pytest.param([{"emptyDir": {}}], False, id="empty dir"),
        pytest.param([{"projected": {"sources": None}}], False, id="projected"),
        pytest.param([{"hostPath": {"path": "/data"}}], True, id="host path"),
        pytest.param([{"persistentVolumeClaim": {"claimName": "c"}}], True, id="claim"),
        pytest.param([{"ephemeral": {}}], True, id="ephemeral claim"),
        pytest.param([{"image": {}}], True, id="image"),
        pytest.param([{"emptyDir": {}}, {"csi": {"driver": "d"}}], True, id="one of two"),
        pytest.param([{}], True, id="a source that we do not know"),
    ],
)
def test_a_pod_is_stateful_with_any_volume_but_those_made_for_it(
    sources: list[dict[str, Any]], stateful: bool
) -> None:
    assert is_stateful_pod(with_volumes(*({"name": "v", **s} for s in sources))) is stateful


@pytest.mark.parametrize(
    ("conditions", "unschedulable"),
    [
        ({}, False),
        ({"PodScheduled": "True"}, False),
        ({"PodScheduled": "Unknown"}, False),
        ({"PodScheduled": "False"}, True),
        ({"Ready": "False"}, False),
    ],
)
def test_a_pod_is_unschedulable_if_the_scheduler_says_so(
    conditions: dict[str, str], unschedulable: bool
) -> None:
    pod = make_pod(status=make_status("Pending", **conditions))
    assert is_pod_unschedulable(pod) is unschedulable


def test_any_of_several_conditions_makes_it_unschedulable() -> None:
    conditions = tuple(PodCondition(type="PodScheduled", status=s) for s in ("True", "False"))
    assert is_pod_unschedulable(make_pod(status=PodStatus(conditions=conditions)))


# Durations


def test_a_new_startup_is_open_and_an_excluded_one_is_done() -> None:
    new = StartupState()
    assert (new.is_reported, new.seen_at, new.is_done, DONE.is_done) == (False, None, False, True)


@pytest.mark.parametrize(
    ("when", "pulling", "initializing", "total", "sli"),
    [
        (30, 0, 0, 30.0, 30.0),
        (30, 10, 0, 30.0, 20.0),
        (30, 10, 5, 30.0, 15.0),
        (30, 20, 15, 30.0, 0.0),
        (-5, 0, 0, 0.0, 0.0),
    ],
)
def test_the_promised_latency_is_without_pulls_and_init_containers_and_never_negative(
    when: int, pulling: int, initializing: int, total: float, sli: float
) -> None:
    created = Time.parse("2100-01-01T00:00:00Z")
    pod = make_pod()
    pod = structs.replace(pod, metadata=structs.replace(pod.metadata, creation_timestamp=created))
    startup = StartupState(
        pulls=BusyTime(total=pulling * SECOND),
        init_containers=BusyTime(total=initializing * SECOND),
    )
    measured = measure_startup(pod, startup, Time(created + when * SECOND))
    assert measured == PodStartup(
        total_seconds=total,
        image_pulling_seconds=pulling,
        init_containers_seconds=initializing,
        sli_seconds=sli,
        is_first_network_pod=False,
    )
