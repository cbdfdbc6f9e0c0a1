"""Decisions of the status manager can be read in its log, each in one line with pod and UID."""

import logging
from collections.abc import Iterator

import pytest
from msgspec import structs

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.status.policy import SyncPolicy
from podstatus.testing.builders import (
    ended,
    make_pod,
    make_static_pod,
    make_status,
    running,
    waiting,
)
from tests.support.status_node import Node, deleting

POLICIES = [
    pytest.param(SyncPolicy(), id="parallel"),
    pytest.param(SyncPolicy.upstream(), id="upstream"),
]
RUNNING = make_status("Running", running("app"), Ready="True")
POD = "pod=default/pod uid=uid-pod"


@pytest.fixture
def debug(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG, logger="podstatus.status"):
        yield caplog


async def synced(policy: SyncPolicy, pod: Pod, *, full: bool = False) -> Node:
    """Return a node that has set the pod's status and synced it."""
    node = Node(pod, policy=policy)
    node.manager.set_pod_status(pod, RUNNING)
    await node.manager.sync_batch(full=full)
    return node


def line(log: pytest.LogCaptureFixture, start: str, level: int = logging.DEBUG) -> str:
    """The one line that starts like this."""
    (message,) = [
        record.getMessage()
        for record in log.records
        if record.levelno == level and record.getMessage().startswith(start)
    ]
    return message


def test_an_accepted_status_shows_the_container_states(debug: pytest.LogCaptureFixture) -> None:
    pod = make_pod()
    status = make_status("Running", running("app"), ended("job", 3), waiting("late"))
    Node(pod).manager.set_pod_status(pod, status)
    message = line(debug, "status cached")
    assert POD in message
    for state in ("'app running;", "job terminated (3);", "late waiting"):
        assert state in message


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_patch_is_logged_before_it_is_sent(
    policy: SyncPolicy, debug: pytest.LogCaptureFixture
) -> None:
    await synced(policy, make_pod())
    message = line(debug, "patching status")
    assert POD in message
    assert '"phase":"Running"' in message


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_reconcile_names_the_parts_that_differ(
    policy: SyncPolicy, debug: pytest.LogCaptureFixture
) -> None:
    pod = make_pod()
    node = await synced(policy, pod)
    shown = structs.replace(RUNNING, phase="Pending")
    node.directory.update_pod(structs.replace(pod, status=shown))
    await node.manager.sync_batch(full=True)
    message = line(debug, "status differs on the API server")
    assert POD in message
    assert "phase" in message
    assert "Ready" not in message.split("difference=")[1]


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_static_pod_without_mirror_is_named(
    policy: SyncPolicy, debug: pytest.LogCaptureFixture
) -> None:
    static = make_static_pod()
    await synced(policy, static, full=True)
    assert f"uid={static.uid}" in line(
        debug, "status is not sent, the static pod has no mirror pod"
    )


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_deletion_that_waits_says_why(
    policy: SyncPolicy, debug: pytest.LogCaptureFixture
) -> None:
    await synced(policy, deleting(make_pod()))
    message = line(debug, "pod is not deleted yet")
    assert POD in message
    assert "the node has not terminated it" in message


@pytest.mark.parametrize(
    ("known", "has_status", "container", "why"),
    [
        (False, False, "test://app", "the pod was deleted"),
        (True, False, "test://app", "the pod has no status yet"),
        (True, True, "test://other", "the container is unknown"),
        (True, True, "", "the container is unknown"),
        (True, True, "own", "the container already has this value"),
    ],
)
def test_an_ignored_probe_result_says_which_case_it_was(
    known: bool, has_status: bool, container: str, why: str, debug: pytest.LogCaptureFixture
) -> None:
    pod = make_pod()
    node = Node(*([pod] if known else []))
    status = make_status("Running", structs.replace(running("app"), ready=True))
    if has_status:
        node.manager.set_pod_status(pod, status)
    if container == "own":
        container = (status.container_statuses or ())[0].container_id
    node.manager.set_container_readiness(pod.uid, container, ready=True)
    message = line(debug, "probe result ignored")
    name = f"{pod.namespace}/{pod.name}" if known or has_status else ""
    assert f"pod={name} uid={pod.uid}" in message
    assert message.endswith(f"reason={why!r}")


@pytest.mark.parametrize(
    ("status", "start", "keys"),
    [
        (RUNNING, "terminated pod has running containers", "containers=app"),
        (make_status("Sleeping"), "terminated pod has an unknown phase", "phase='Sleeping'"),
    ],
)
def test_what_cannot_be_at_the_end_of_a_pod_is_a_programmer_error(
    status: PodStatus, start: str, keys: str, caplog: pytest.LogCaptureFixture
) -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, status)
    node.manager.terminate_pod(pod)
    assert f"{POD} {keys}" in line(caplog, start, logging.ERROR)


def test_setting_a_condition_of_another_owner_is_a_programmer_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pod = make_pod()
    foreign = PodCondition(type="example.com/Gate", status="True", last_transition_time=Time(1))
    status = structs.replace(RUNNING, conditions=(*(RUNNING.conditions or ()), foreign))
    Node(pod).manager.set_pod_status(pod, status)
    message = line(caplog, "status sets conditions that other components own", logging.ERROR)
    assert f"{POD} conditions=example.com/Gate" in message


def test_repeating_a_condition_of_another_owner_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    foreign = PodCondition(type="example.com/Gate", status="True", last_transition_time=Time(1))
    pod = structs.replace(make_pod(), status=structs.replace(RUNNING, conditions=(foreign,)))
    Node(pod).manager.set_pod_status(pod, pod.status)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_nothing_is_described_when_debug_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise AssertionError("described although nothing is logged")

    monkeypatch.setattr("podstatus.status.manager.describe_containers", fail)
    monkeypatch.setattr("podstatus.status.manager.unmodified_reason", fail)
    monkeypatch.setattr("podstatus.status.sync.log_plan.describe_difference", fail)
    logging.getLogger("podstatus.status").setLevel(logging.INFO)
    try:
        pod = make_pod()
        node = Node(pod)
        node.manager.set_pod_status(pod, RUNNING)
        node.manager.set_container_readiness(pod.uid, "test://other", ready=True)
        await node.manager.sync_batch(full=True)
    finally:
        logging.getLogger("podstatus.status").setLevel(logging.NOTSET)
