"""What the log says about decisions."""

import pytest
from msgspec import structs

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.describe import (
    deletion_blocker,
    describe_containers,
    describe_difference,
    foreign_conditions,
    running_containers,
    unmodified_reason,
)
from podstatus.testing.builders import (
    ended,
    make_pod,
    make_static_pod,
    make_status,
    running,
    waiting,
)

GATES = FeatureGates()


def deleted(pod: Pod, phase: str = "") -> Pod:
    metadata = structs.replace(pod.metadata, deletion_timestamp=Time.parse("2026-01-01T00:00:00Z"))
    return structs.replace(pod, metadata=metadata, status=make_status(phase))


@pytest.mark.parametrize(
    ("container", "text"),
    [
        (running("app"), "app running"),
        (waiting("app", "CrashLoopBackOff"), "app waiting (CrashLoopBackOff)"),
        (waiting("app", ""), "app waiting"),
        (ended("app", 3), "app terminated (3)"),
        (ContainerStatus(name="app"), "app unknown"),
        (
            structs.replace(waiting("app", "CrashLoopBackOff"), last_state=ended("app", 1).state),
            "app waiting (CrashLoopBackOff), last terminated (1)",
        ),
    ],
)
def test_the_state_of_a_container(container: ContainerStatus, text: str) -> None:
    assert describe_containers(make_status("Running", container)) == text


def test_init_containers_come_first() -> None:
    status = structs.replace(
        make_status("Running", running("app"), waiting("late", "")),
        init_container_statuses=(ended("init"),),
    )
    assert describe_containers(status) == "init terminated (0); app running; late waiting"
    assert describe_containers(PodStatus()) == ""
    assert running_containers(status) == ["app"]
    status = structs.replace(status, init_container_statuses=(running("sidecar"),))
    assert running_containers(status) == ["sidecar", "app"]


def test_a_difference_names_what_only_one_side_has_too() -> None:
    observed = make_status("Pending", Ready="False", PodScheduled="True")
    cached = make_status("Running", Initialized="True", PodScheduled="True")
    parts = describe_difference(observed, cached, GATES).split(", ")
    assert sorted(parts) == ["Condition Initialized", "Condition Ready", "Field phase"]
    assert describe_difference(cached, cached, GATES) == ""


@pytest.mark.parametrize(
    ("pod", "finished", "blocker"),
    [
        (make_pod(), False, None),
        (deleted(make_static_pod(mirror=True)), False, None),
        (deleted(make_pod(), "Failed"), False, "the node has not terminated it"),
        (deleted(make_pod(), "Running"), True, "its phase is Running on the API server"),
        (deleted(make_pod()), True, "its phase is empty on the API server"),
        (deleted(make_pod(), "Succeeded"), True, None),
    ],
)
def test_what_a_deletion_waits_for(pod: Pod, finished: bool, blocker: str | None) -> None:
    assert deletion_blocker(pod, finished=finished) == blocker


def test_why_a_probe_result_changed_nothing() -> None:
    container = structs.replace(running("app"), container_id="process://1")
    status = make_status("Running", container)
    assert unmodified_reason(status, "process://1", has_pod=False) == "the pod was deleted"
    assert unmodified_reason(None, "process://1") == "the pod has no status yet"
    assert unmodified_reason(status, "") == "the container is unknown"
    assert unmodified_reason(status, "process://2") == "the container is unknown"
    assert unmodified_reason(status, "process://1") == "the container already has this value"


def test_foreign_conditions_are_those_that_another_owner_set_otherwise() -> None:
    pod = structs.replace(make_pod(), status=make_status("Running", Same="True", Other="True"))
    status = make_status(
        "Running", Ready="True", DisruptionTarget="True", Same="True", Other="False", New="True"
    )
    assert foreign_conditions(pod, status, GATES) == ["Other", "New"]
    assert foreign_conditions(pod, PodStatus(), GATES) == []
