"""The summary of a pod."""

import sys

import pytest
from msgspec import structs

from podstatus import PodStatus
from podstatus.kube.objects.pod_status import ContainerStatus, PodCondition, PodIP
from podstatus.observe.summary.container_state import format_container_state
from podstatus.observe.summary.pod import summarize_pod
from podstatus.status.decide.terminate import terminate_status
from podstatus.testing.builders import ended, make_pod, running, waiting

STATUS = PodStatus(
    phase="Running",
    pod_ips=(PodIP(ip="10.0.0.1"),),
    conditions=(PodCondition(type="Ready", status="True"),),
    init_container_statuses=(ended("prepare"), running("proxy")),
    container_statuses=(running("app"), waiting("other", "CrashLoopBackOff")),
)


def test_containers_come_in_the_order_of_the_spec_with_their_kinds() -> None:
    pod = make_pod(
        containers=("app", "other"),
        init_containers=("prepare",),
        sidecars=("proxy",),
        status=STATUS,
    )
    known = summarize_pod(pod)
    assert [(c.name, c.kind, format_container_state(c.state)) for c in known.containers] == [
        ("prepare", "init", "terminated Completed 0"),
        ("proxy", "sidecar", "running"),
        ("app", "container", "running"),
        ("other", "container", "waiting CrashLoopBackOff"),
    ]
    assert known.ready
    assert known.ips == ("10.0.0.1",)


def test_container_without_a_status_is_there() -> None:
    (only,) = summarize_pod(make_pod(containers=("app",))).containers
    assert (only.name, only.state, only.ready) == ("app", None, False)


@pytest.mark.parametrize(
    ("before", "created"),
    [
        (waiting("app", "CreateContainerError"), False),
        (running("app"), True),
        (structs.replace(waiting("app"), last_state=ended("app", 137).state), True),
        (structs.replace(waiting("app"), restart_count=1), True),
    ],
)
def test_a_container_that_was_never_created_is_known_after_its_pod_has_ended(
    before: ContainerStatus, created: bool
) -> None:
    status = PodStatus(phase="Pending", container_statuses=(before,))
    pod = make_pod(containers=("app",), status=status)
    (app,) = summarize_pod(structs.replace(pod, status=terminate_status(pod, status))).containers
    assert format_container_state(app.state) == "terminated ContainerStatusUnknown 137"
    assert app.created is created


def test_long_messages_are_cut_and_words_are_shared() -> None:
    status = structs.replace(STATUS, message="x" * 10_000)
    one = summarize_pod(make_pod("one", containers=("app", "other"), status=status))
    two = summarize_pod(make_pod("two", containers=("app", "other"), status=status))
    assert len(one.message) == 512
    assert one.containers[1].state is two.containers[1].state
    assert sys.getsizeof(one) < 512
