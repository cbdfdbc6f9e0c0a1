"""`started` and `ready` of containers, with and without probes."""

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container, Probe
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    PodStatus,
)
from podstatus.kube.scalars.time import Time
from podstatus.pods.apply_probe_results import ProbeResults
from podstatus.testing.builders import ended, make_pod, make_status, running, waiting
from tests.support.container_facts import only

ID = "fake://app"
JUST_STARTED = structs.replace(running("app"), started=None, ready=False)


def pod_with(*, startup: bool = False, readiness: bool = False, was_ready: str = "") -> Pod:
    container = Container(
        name="app",
        startup_probe=Probe() if startup else None,
        readiness_probe=Probe() if readiness else None,
    )
    status = make_status("Running", **({"Ready": was_ready} if was_ready else {}))
    pod = make_pod(status=status)
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=(container,)))


def mark(verdicts: ProbeResults, pod: Pod, status: ContainerStatus) -> tuple[bool | None, bool]:
    """Return whether the container has started and is ready."""
    marked = only(
        verdicts.apply_to(pod, make_status("Running", status), pod.status).container_statuses
    )
    return marked.started, marked.ready


def mark_init(pod: Pod, status: ContainerStatus) -> tuple[bool | None, bool]:
    statuses = PodStatus(init_container_statuses=(status,))
    marked = only(ProbeResults().apply_to(pod, statuses, pod.status).init_container_statuses)
    return marked.started, marked.ready


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (JUST_STARTED, (True, True)),
        (waiting("app"), (False, False)),
        (ended("app"), (False, False)),
    ],
)
def test_without_probes_whatever_runs_has_started_and_is_ready(
    status: ContainerStatus, expected: tuple[bool, bool]
) -> None:
    assert mark(ProbeResults(), pod_with(), status) == expected


@pytest.mark.parametrize(
    ("verdict", "known_before", "expected"),
    [
        (None, None, (False, False)),
        (None, False, (False, False)),
        (None, True, (True, True)),
        (True, None, (True, True)),
        (False, None, (False, False)),
        (False, True, (False, False)),
    ],
)
def test_with_a_startup_probe_a_container_has_started_when_the_probe_says_so_once(
    *, verdict: bool | None, known_before: bool | None, expected: tuple[bool, bool]
) -> None:
    verdicts = ProbeResults(started={} if verdict is None else {ID: verdict})
    status = structs.replace(JUST_STARTED, started=known_before)
    assert mark(verdicts, pod_with(startup=True), status) == expected


@pytest.mark.parametrize(("verdict", "ready"), [(None, False), (False, False), (True, True)])
def test_with_a_readiness_probe_a_container_is_ready_when_the_probe_says_so(
    *, verdict: bool | None, ready: bool
) -> None:
    verdicts = ProbeResults(ready={} if verdict is None else {ID: verdict})
    assert mark(verdicts, pod_with(readiness=True), JUST_STARTED) == (True, ready)


def test_what_has_not_started_is_not_ready_even_if_its_probe_says_so() -> None:
    pod = pod_with(startup=True, readiness=True)
    assert mark(ProbeResults(ready={ID: True}), pod, JUST_STARTED) == (False, False)


def test_verdicts_on_other_containers_do_not_count() -> None:
    verdicts = ProbeResults(ready={"fake://other": True}, started={"fake://other": True})
    pod = pod_with(startup=True, readiness=True)
    assert mark(verdicts, pod, JUST_STARTED) == (False, False)


@pytest.mark.parametrize(
    ("began", "was_ready", "verdict", "ready"),
    [
        pytest.param("11:00:00", "True", None, True, id="it was ready"),
        pytest.param("11:00:00", "False", None, False, id="it was not"),
        pytest.param("11:00:00", "", None, False, id="no previous status"),
        pytest.param("11:00:00", "True", False, False, id="its probe has a result"),
        pytest.param("11:59:50", "True", None, False, id="it is too young"),
        pytest.param("11:59:49", "True", None, True, id="it is just old enough"),
        pytest.param("12:30:00", "True", None, False, id="it came later"),
    ],
)
def test_after_a_restart_of_the_agent_a_container_is_ready_if_it_was(
    *, began: str, was_ready: str, verdict: bool | None, ready: bool
) -> None:
    verdicts = ProbeResults(
        ready={} if verdict is None else {ID: verdict},
        prober_start=Time.parse("2024-06-01T12:00:00Z"),
    )
    status = structs.replace(running("app", since=f"2024-06-01T{began}Z"), started=None)
    pod = pod_with(readiness=True, was_ready=was_ready)
    assert mark(verdicts, pod, status)[1] is ready


def test_a_container_is_old_enough_a_nanosecond_after_ten_seconds() -> None:
    status = structs.replace(running("app", since="2024-06-01T11:59:50Z"), started=None)
    pod = pod_with(readiness=True, was_ready="True")
    at = Time.parse("2024-06-01T12:00:00Z")
    verdicts = [ProbeResults(prober_start=start) for start in (at, Time(at + 1))]
    assert [mark(it, pod, status)[1] for it in verdicts] == [False, True]


def test_after_a_restart_of_the_agent_a_container_without_a_start_waits_for_its_probe() -> None:
    began = ContainerState(running=ContainerStateRunning())
    status = structs.replace(JUST_STARTED, state=began)
    verdicts = ProbeResults(prober_start=Time.parse("2024-06-01T12:00:00Z"))
    assert mark(verdicts, pod_with(readiness=True, was_ready="True"), status) == (True, False)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (structs.replace(JUST_STARTED, name="init"), (True, False)),
        (ended("init"), (False, True)),
        (ended("init", 1), (False, False)),
        (waiting("init"), (False, False)),
    ],
)
def test_an_init_container_is_ready_when_it_has_succeeded(
    status: ContainerStatus, expected: tuple[bool, bool]
) -> None:
    assert mark_init(make_pod(init_containers=("init",)), status) == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (structs.replace(JUST_STARTED, name="proxy"), (True, True)),
        (ended("proxy"), (False, False)),
    ],
)
def test_a_sidecar_is_ready_while_it_runs(
    status: ContainerStatus, expected: tuple[bool, bool]
) -> None:
    assert mark_init(make_pod(sidecars=("proxy",)), status) == expected


def test_ephemeral_containers_are_left_alone() -> None:
    status = PodStatus(ephemeral_container_statuses=(JUST_STARTED,))
    marked = ProbeResults().apply_to(make_pod(), status, PodStatus())
    assert marked.ephemeral_container_statuses == (JUST_STARTED,)


@pytest.mark.parametrize(
    ("old", "verdict", "ready"),
    [
        pytest.param(running("app", ready=True), None, True, id="it was ready"),
        pytest.param(running("app", ready=False), None, False, id="it was not"),
        pytest.param(running("app", ready=True), False, False, id="its probe has a result"),
        pytest.param(running("other", ready=True), None, False, id="another one was"),
        pytest.param(None, None, False, id="no previous status"),
    ],
)
def test_a_container_stays_ready_until_its_probe_has_a_result(
    *, old: ContainerStatus | None, verdict: bool | None, ready: bool
) -> None:
    pod = pod_with(readiness=True)
    statuses = None if old is None else (old,)
    pod = structs.replace(pod, status=structs.replace(pod.status, container_statuses=statuses))
    verdicts = ProbeResults(ready={} if verdict is None else {ID: verdict})
    assert mark(verdicts, pod, JUST_STARTED)[1] is ready
