"""The health state and message of a pod."""

from typing import Any

import pytest
from msgspec import structs

from podstatus import Time
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.summary.container_state import parse_container_state
from podstatus.observe.summary.health import HealthState, pod_health
from podstatus.observe.summary.pod import ConditionSummary, ContainerSummary, PodSummary

NOW = Time.parse("2026-01-01T01:00:00Z")
EARLIER = Time.parse("2026-01-01T00:58:30Z")
LONG_AGO = Time.parse("2026-01-01T00:00:00Z")


def app(state: str, message: str = "", **more: Any) -> ContainerSummary:
    parsed = parse_container_state(state)
    if message and parsed is not None:
        parsed = structs.replace(parsed, message=message)
    return ContainerSummary(name="app", state=parsed, **more)


def pod(phase: str, *containers: ContainerSummary, ready: bool = False, **more: Any) -> PodSummary:
    ready_is = ConditionSummary(type="Ready", status="True" if ready else "False", since=EARLIER)
    more = {"node": "n", "created": EARLIER, **more}
    return PodSummary(
        uid=PodUID("u"),
        namespace="default",
        name="web",
        phase=phase,
        conditions=(ready_is,),
        containers=containers,
        **more,
    )


LOG = ContainerSummary(name="log", state=parse_container_state("running"), ready=True)
BACKING_OFF = app(
    "terminated ContainerStatusUnknown 137",
    last_state=parse_container_state("terminated Error 3"),
    restarts=2,
)
"""A container in back-off when its pod was terminated."""


@pytest.mark.parametrize(
    ("known", "word", "sentence"),
    [
        (pod("Running", app("running"), ready=True), HealthState.HEALTHY, "Ready for 1 min 30 s."),
        (
            pod("Running", app("running", restarts=2), ready=True),
            HealthState.HEALTHY,
            "Ready for 1 min 30 s, after 2 restarts.",
        ),
        (
            pod("Pending", app("waiting ContainerCreating")),
            HealthState.STARTING,
            "Pending for 1 min 30 s: container app has not started yet.",
        ),
        (
            pod("Pending", app("running", kind="init")),
            HealthState.STARTING,
            "Pending for 1 min 30 s: init container app is running.",
        ),
        (pod("Pending", node="", created=LONG_AGO), HealthState.STUCK, "it is not bound to a node"),
        (
            pod(
                "Running",
                app(
                    "waiting CrashLoopBackOff",
                    last_state=parse_container_state("terminated Error 3"),
                    restarts=4,
                ),
            ),
            HealthState.CRASHING,
            "Container app exited: Error 3, 4 restarts; it will be restarted after a back-off.",
        ),
        (
            pod("Running", app("terminated Error 3", restarts=1)),
            HealthState.CRASHING,
            "Container app exited: Error 3, 1 restart;",
        ),
        (
            pod("Pending", app("waiting ErrImageNeverPull", message="no such image")),
            HealthState.BLOCKED,
            "Container app is waiting: ErrImageNeverPull: no such image",
        ),
        (pod("Running", app("running")), HealthState.UNREADY, "its readiness probe fails"),
        (
            pod("Running", app("running", started=False)),
            HealthState.UNREADY,
            "has not passed its startup probe",
        ),
        (
            pod("Running", app("running"), deleting=EARLIER),
            HealthState.STUCK,
            "The deletion is overdue by 90 s; container app is still running.",
        ),
        (
            pod("Running", app("terminated Completed 0"), deleting=NOW),
            HealthState.ENDING,
            "The pod is being deleted; no container is running.",
        ),
        (pod("Succeeded"), HealthState.DONE, "All containers exited with code 0."),
        (
            pod("Failed", app("terminated OOMKilled 137")),
            HealthState.FAILED,
            "app exited: OOMKilled 137.",
        ),
        (
            pod("Failed", reason="Evicted", message="no memory"),
            HealthState.FAILED,
            "Evicted: no memory",
        ),
        (
            pod("Running", app("terminated Error 3"), restart_policy="Always"),
            HealthState.CRASHING,
            "Container app exited: Error 3; it will be restarted.",
        ),
        (
            pod("Running", app("terminated Completed 0"), restart_policy="Always"),
            HealthState.CRASHING,
            "Container app exited: Completed 0; it will be restarted.",
        ),
        (
            pod("Running", app("terminated Error 3"), LOG, restart_policy="OnFailure"),
            HealthState.CRASHING,
            "Container app exited: Error 3; it will be restarted.",
        ),
        (
            pod("Running", app("terminated Error 3"), LOG, restart_policy="Never"),
            HealthState.FAILED,
            "Container app exited: Error 3; it will not be restarted.",
        ),
        (
            pod("Running", app("terminated Error 3", restarts=1), LOG, restart_policy="Never"),
            HealthState.CRASHING,
            "Container app exited: Error 3, 1 restart; it will be restarted after a back-off.",
        ),
        (
            pod("Running", app("terminated Completed 0", restarts=1), restart_policy="OnFailure"),
            HealthState.DONE,
            "All containers exited with code 0.",
        ),
        (
            pod("Running", app("terminated Completed 0"), LOG, restart_policy="OnFailure"),
            HealthState.HEALTHY,
            "Container app exited with code 0; container log is still running.",
        ),
        (
            pod(
                "Running",
                app("terminated Completed 0"),
                app("running", kind="sidecar"),
                restart_policy="Never",
            ),
            HealthState.UNREADY,
            "its readiness probe fails",
        ),
        (
            pod(
                "Running", app("terminated Completed 0"), LOG, restart_policy="Never", gates=("x",)
            ),
            HealthState.UNREADY,
            "The pod is not ready.",
        ),
        (
            pod("Failed", BACKING_OFF, reason="Terminated", message="the node shuts down"),
            HealthState.FAILED,
            "Terminated: the node shuts down",
        ),
        (pod("Failed", BACKING_OFF), HealthState.FAILED, "Container app exited: Error 3."),
        (
            pod("Failed", app("terminated ContainerStatusUnknown 137")),
            HealthState.UNKNOWN,
            "The exit code of container app is unknown.",
        ),
    ],
)
def test_worst_problem_is_reported_with_its_cause(
    known: PodSummary, word: HealthState, sentence: str
) -> None:
    health = pod_health(known, NOW)
    assert health.state is word
    assert sentence in health.message


def test_sentence_of_a_gate_is_the_condition_s() -> None:
    text = 'corresponding condition of pod readiness gate "x" does not exist.'
    ready = ConditionSummary(type="Ready", status="False", message=text)
    known = PodSummary(
        uid=PodUID("u"),
        namespace="default",
        name="web",
        phase="Running",
        conditions=(ready,),
        containers=(app("running", ready=True),),
    )
    assert pod_health(known, NOW).message == text


def test_a_sentence_is_one_line() -> None:
    blocked = app("waiting CreateContainerError", message="cannot:\n  no such\r\n\tfile\n")
    said = pod_health(pod("Pending", blocked), NOW).message
    assert said == "Container app is waiting: CreateContainerError: cannot: no such file"
    ended = pod("Failed", reason="Evicted", message="no\nmemory")
    assert pod_health(ended, NOW).message == "Evicted: no memory"


def restarted(seconds: float, last: str = "terminated Error 3") -> ContainerSummary:
    """A container that runs again, so long after its last end."""
    state = parse_container_state(last)
    assert state is not None
    finished = Time(NOW - round(seconds * 1e9))
    return app("running", last_state=structs.replace(state, finished_at=finished), restarts=2)


@pytest.mark.parametrize("ready", [True, False])
def test_a_container_that_crashed_a_short_time_ago_is_crashing(*, ready: bool) -> None:
    health = pod_health(pod("Running", LOG, restarted(34), ready=ready), NOW)
    assert health.state is HealthState.CRASHING
    assert health.message == (
        "Container app exited 34 s ago: Error 3, 2 restarts; it is running again."
    )


@pytest.mark.parametrize(
    "container",
    [
        restarted(600),
        restarted(34, "terminated Completed 0"),
        app("running", last_state=parse_container_state("terminated Error 3"), restarts=1),
    ],
    ids=["ten minutes ago", "exited with 0", "at an unknown time"],
)
def test_a_container_without_a_recent_crash_is_healthy(container: ContainerSummary) -> None:
    assert pod_health(pod("Running", container, ready=True), NOW).state is HealthState.HEALTHY


def test_a_crash_until_the_last_moment_of_the_window_counts() -> None:
    health = pod_health(pod("Running", restarted(599.9), ready=True), NOW)
    assert health.message.startswith("Container app exited 9 min 59 s ago: ")


def test_a_problem_of_now_comes_before_a_crash_of_the_past() -> None:
    waiting = ContainerSummary(name="db", state=parse_container_state("waiting ErrImagePull"))
    assert pod_health(pod("Running", restarted(34), waiting), NOW).state is HealthState.BLOCKED


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("no node matches.", "Pending for 1 min 30 s: it is not bound to a node: no node matches."),
        ("", "Pending for 1 min 30 s: it is not bound to a node."),
    ],
)
def test_a_pod_without_a_node_has_the_message_of_the_scheduler(message: str, sentence: str) -> None:
    scheduled = ConditionSummary(
        type="PodScheduled", status="False", reason="Unschedulable", message=message
    )
    unbound = structs.replace(pod("Pending", node=""), conditions=(scheduled,))
    assert pod_health(unbound, NOW).message == sentence
