"""Lifecycle of simulated containers: tables, and properties of any script."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ContainerRunState
from podstatus.runtime.simulated.model.container_timeline import (
    ContainerExit,
    ProbeName,
    SimulatedAttempt,
    find_exit,
    has_ended,
    probe_outcomes,
)
from podstatus.runtime.simulated.model.pod_record import (
    SimulatedPodRecord,
    SimulatedSandbox,
    next_change,
    next_exit,
    runtime_pod,
)
from podstatus.runtime.simulated.model.script import Script, parse_script

S = 1_000_000_000
ALL: tuple[ProbeName, ...] = ("startup", "readiness", "liveness")


def attempt(
    script: Script | str = "", *, id: str = "simulated://1", **fields: object
) -> SimulatedAttempt:
    parsed = parse_script(script)[0] if isinstance(script, str) else script
    plain = {"name": "app", "sandbox": "s", "restart_count": 0, "image": "i", "image_ref": "r"}
    return SimulatedAttempt(**{**plain, "id": id, "script": parsed, "began": 0, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("script", "stop_at", "kill_at", "end"),
    [
        ("", None, None, None),
        ("run=3s", None, None, ContainerExit(3 * S, 0, "Completed")),
        ('run=3s, exit=3, message="bye"', None, None, ContainerExit(3 * S, 3, "Error", "bye")),
        ("run=3s, exit=oom", None, None, ContainerExit(3 * S, 137, "OOMKilled")),
        ("", 5, 35, ContainerExit(5 * S, 0, "Completed")),
        ("stop=2s, stop-exit=5", 5, 35, ContainerExit(7 * S, 5, "Error")),
        ("stop=40s", 5, 35, ContainerExit(35 * S, 137, "Error")),
        ("stop=never", 5, 35, ContainerExit(35 * S, 137, "Error")),
        ("stop=never", 5, 5, ContainerExit(5 * S, 137, "Error")),
        ("stop-exit=4", 5, 5, ContainerExit(5 * S, 4, "Error")),
        ("stop=never, kill=10s", 5, 35, ContainerExit(45 * S, 137, "Error")),
        ("stop=never, kill=never", 5, 35, None),
        ("run=6s, exit=1, stop=2s", 5, 35, ContainerExit(6 * S, 1, "Error")),
        ("", None, 5, ContainerExit(5 * S, 137, "Error")),
    ],
)
def test_how_and_when_an_attempt_ends(
    script: str, stop_at: int | None, kill_at: int | None, end: ContainerExit | None
) -> None:
    stopped = attempt(script, stop_at=stop_at and stop_at * S, kill_at=kill_at and kill_at * S)
    assert find_exit(stopped) == end


def test_what_could_not_run_ended_when_it_began() -> None:
    assert find_exit(attempt(start_error="no")) == ContainerExit(0, 128, "StartError", "no")


@pytest.mark.parametrize(
    ("script", "seconds", "results", "until"),
    [
        ("", 0, {"startup": True, "readiness": True, "liveness": True}, None),
        ("ready=-4s+", 1, {"startup": True, "readiness": False, "liveness": True}, 4),
        ("started=?4s+, ready=-8s+", 1, {}, 4),
        ("started=?4s-", 4, {"startup": False}, None),
        ("started=?4s+, ready=-8s+", 5, {"startup": True, "readiness": False, "liveness": True}, 8),
        ("started=?4s+, alive=+1s-", 3, {}, 4),
        ("alive=+3s-", 4, {"startup": True, "readiness": True, "liveness": False}, None),
        ("run=2s", 2, {}, None),
    ],
)
def test_what_probes_say(
    script: str, seconds: int, results: dict[str, bool], until: int | None
) -> None:
    moment = None if until is None else until * S
    assert probe_outcomes(attempt(script, probes=ALL), seconds * S) == (results, moment)


def test_readiness_may_change_when_it_is_asked_to_end() -> None:
    stopping = attempt("stop=5s, stop-ready=-", probes=ALL, stop_at=10 * S, kill_at=30 * S)
    results, _ = probe_outcomes(stopping, 11 * S)
    assert results["readiness"] is False
    unasked, _ = probe_outcomes(attempt("stop-ready=-", probes=ALL), 11 * S)
    assert unasked["readiness"] is True


def test_a_container_has_only_the_probes_of_its_spec() -> None:
    assert probe_outcomes(attempt("ready=-"), 0) == ({}, None)


def lines() -> st.SearchStrategy[str]:
    step = st.builds("{}{}s".format, st.sampled_from("+-?"), st.integers(1, 9))
    return (
        st.lists(step, min_size=1, max_size=3)
        .map("".join)
        .flatmap(lambda text: st.sampled_from([text, text + "*", text + "+"]))
    )


def lengths(*endless: str) -> st.SearchStrategy[str]:
    return st.integers(0, 20).map("{}s".format) | st.sampled_from(endless)


def scripts() -> st.SearchStrategy[str]:
    words = {
        "run": lengths("forever"),
        "exit": st.sampled_from(["0", "3", "oom"]),
        "stop": lengths("never"),
        "kill": lengths("never"),
        "ready": lines(),
        "started": lines(),
        "alive": lines(),
    }
    return st.fixed_dictionaries({}, optional=words).map(
        lambda chosen: ", ".join(f"{word}={value}" for word, value in chosen.items())
    )


def records() -> st.SearchStrategy[SimulatedPodRecord]:
    moments = st.none() | st.integers(0, 20).map(lambda seconds: seconds * S)
    attempts = st.builds(
        attempt, scripts(), stop_at=moments, kill_at=moments, probes=st.sampled_from([(), ALL])
    )
    return st.builds(
        SimulatedPodRecord,
        uid=st.just(PodUID("uid")),
        namespace=st.just("default"),
        name=st.just("pod"),
        sandboxes=st.sampled_from([(), (SimulatedSandbox(id="s", ip="10.88.0.2"),)]),
        attempts=st.lists(attempts, max_size=3).map(tuple),
    )


@given(records())
def test_a_record_reads_back_as_it_was_written(record: SimulatedPodRecord) -> None:
    assert msgspec.json.decode(msgspec.json.encode(record), type=SimulatedPodRecord) == record


@given(records())
def test_nothing_changes_before_the_moment_at_which_something_does(
    record: SimulatedPodRecord,
) -> None:
    def seen(now: int) -> object:
        return runtime_pod(record, now)[0], [probe_outcomes(a, now)[0] for a in record.attempts]

    now, steps = 0, 0
    while (moment := next_change(record, now, next_exit(record, now))) is not None and steps < 30:
        assert moment > now
        assert seen(moment - 1) == seen(now)
        now, steps = moment, steps + 1
    if moment is None:
        assert seen(now + 10**6 * S) == seen(now)


@given(records())
def test_facts_change_when_a_container_ends_and_an_end_stays(record: SimulatedPodRecord) -> None:
    moments = [0]
    while (end := next_exit(record, moments[-1])) is not None:
        moments.append(end)
    for before, after in pairwise(moments):
        assert runtime_pod(record, before)[0] == runtime_pod(record, after - 1)[0]
        assert runtime_pod(record, before)[0] != runtime_pod(record, after)[0]
        old, new = runtime_pod(record, before)[0].facts, runtime_pod(record, after)[0].facts
        for was, is_now in zip(old.containers, new.containers, strict=True):
            assert was.state is ContainerRunState.RUNNING or was == is_now


def test_of_older_attempts_the_newest_is_kept_and_whatever_runs() -> None:
    record = SimulatedPodRecord(uid=PodUID("uid"), namespace="default", name="pod")
    for number, script in enumerate(["run=1s", "stop=never", "run=1s", "run=1s", "run=1s"]):
        made = attempt(script, id=f"{number}", restart_count=number, began=number * 2 * S)
        record = record.with_attempt(made)
    assert [found.id for found in record.attempts] == ["4", "3", "1"]
    other = attempt("", id="o", name="other", began=20 * S)
    assert len(record.with_attempt(other).attempts) == 4
    assert [has_ended(found, 20 * S) for found in record.attempts] == [True, True, False]
