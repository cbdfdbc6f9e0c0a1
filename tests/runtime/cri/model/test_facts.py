"""Statuses of CRI become facts, with the quirks of containerd put right."""

from typing import Any

import pytest
from msgspec import structs

from podstatus.kube.objects.pod_status import LinuxContainerUser
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    NetworkMode,
    ResourceFacts,
    SandboxState,
)
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.runtime.cri.api import containers as c
from podstatus.runtime.cri.api import sandboxes as s
from podstatus.runtime.cri.api.images import CriImageSpec
from podstatus.runtime.cri.api.resources import CriContainerResources, CriLinuxContainerResources
from podstatus.runtime.cri.api.security import CriNamespaceOption
from podstatus.runtime.cri.model.facts import (
    ContainerInfo,
    SandboxInfo,
    container_facts,
    runtime_pod,
)

LABELS = {
    "io.kubernetes.container.name": "app",
    "io.kubernetes.pod.name": "web",
    "io.kubernetes.pod.namespace": "default",
    "io.kubernetes.pod.uid": "u-1",
}
SECOND = 10**9


def info(own_message: str = "", sandbox: str = "s1", **status: Any) -> ContainerInfo:
    base = c.CriContainerStatus(
        id="c1",
        state=c.CONTAINER_EXITED,
        created_at=1 * SECOND,
        started_at=2 * SECOND,
        finished_at=3 * SECOND,
        image=CriImageSpec(image="busybox:1"),
        image_ref="busybox@sha256:1",
        annotations={"io.kubernetes.container.restartCount": "4"},
    )
    changed = structs.replace(base, **status)
    listed = c.CriContainer(
        id=changed.id, pod_sandbox_id=sandbox, labels=LABELS, created_at=changed.created_at
    )
    return ContainerInfo(listed=listed, status=changed, message=own_message)


def facts(own_message: str = "", **status: Any) -> ContainerFacts:
    return container_facts("containerd", info(own_message, **status), active=True)


def at(seconds: int) -> Time:
    return Time.from_unix_nanos(seconds * SECOND)


def test_an_exit() -> None:
    assert facts("bye", exit_code=3, reason="Error") == ContainerFacts(
        name="app",
        state=ContainerRunState.EXITED,
        id="containerd://c1",
        created_at=at(1),
        started_at=at(2),
        finished_at=at(3),
        exit_code=3,
        reason="Error",
        message="bye",
        image="busybox:1",
        image_ref="busybox@sha256:1",
        restart_count=4,
    )


def test_no_container_ends_before_it_started() -> None:
    """containerd notes both by itself: of a short run the exit may be noted first."""
    ended = facts(finished_at=2 * SECOND - 1)
    assert ended.finished_at == ended.started_at == at(2)


def test_a_container_that_did_not_start_has_no_start() -> None:
    failed = facts(started_at=0, exit_code=128, reason="StartError", message="exec failed")
    assert (failed.started_at, failed.finished_at) == (UNSET_TIME, at(3))
    assert failed.message == "exec failed"


@pytest.mark.parametrize(
    ("runtime", "own", "joined"),
    [("", "", ""), ("a", "", "a"), ("", "b", "b"), ("a", "b", "a: b")],
)
def test_the_runtimes_message_comes_before_the_containers(
    runtime: str, own: str, joined: str
) -> None:
    assert container_facts("x", info(own, message=runtime), active=True).message == joined


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (c.CONTAINER_CREATED, (ContainerRunState.CREATED, UNSET_TIME)),
        (c.CONTAINER_RUNNING, (ContainerRunState.RUNNING, at(2))),
        (c.CONTAINER_UNKNOWN, (ContainerRunState.UNKNOWN, at(2))),
        (9, (ContainerRunState.UNKNOWN, at(2))),
    ],
)
def test_a_container_that_has_not_ended_has_no_end(
    state: int, expected: tuple[ContainerRunState, Time]
) -> None:
    running = facts("early", state=state, exit_code=1, reason="x")
    assert (running.state, running.started_at) == expected
    ended = running.finished_at, running.exit_code, running.reason, running.message
    assert ended == (UNSET_TIME, 0, "", "")


@pytest.mark.parametrize(("text", "count"), [("4", 4), ("", 0), ("x", 0), ("-1", 0), ("²", 0)])
def test_the_restart_count(text: str, count: int) -> None:
    annotations = {"io.kubernetes.container.restartCount": text}
    assert facts(annotations=annotations).restart_count == count


@pytest.mark.parametrize(
    ("linux", "expected"),
    [
        (
            CriLinuxContainerResources(
                cpu_period=100_000, cpu_quota=50_000, cpu_shares=204, memory_limit_in_bytes=2**20
            ),
            ResourceFacts(
                cpu_request=Quantity("200m"),
                cpu_limit=Quantity("500m"),
                memory_limit=Quantity("1Mi"),
                memory_request=Quantity("64Ki"),
            ),
        ),
        (
            CriLinuxContainerResources(cpu_quota=-1, cpu_period=100_000),
            ResourceFacts(memory_request=Quantity("64Ki")),
        ),
    ],
)
def test_resources(linux: CriLinuxContainerResources, expected: ResourceFacts) -> None:
    container = facts(
        resources=CriContainerResources(linux=linux),
        annotations={"podstatus.dev/memory-request": "64Ki"},
    )
    assert container.resources == expected


def test_a_runtime_that_reports_no_resources_and_no_user() -> None:
    assert (facts().resources, facts().user) == (None, None)


def test_the_user() -> None:
    user = c.CriContainerUser(linux=c.CriLinuxContainerUser(uid=1, gid=2, supplemental_groups=(3,)))
    assert facts(user=user).user == LinuxContainerUser(uid=1, gid=2, supplemental_groups=(3,))


def sandbox(
    id: str, created: int, *, ready: bool = True, ip: str = "10.0.0.1", host: bool = False
) -> SandboxInfo:
    state = s.SANDBOX_READY if ready else 1
    options = CriNamespaceOption(network=2 if host else 0)
    return SandboxInfo(
        listed=s.CriPodSandbox(
            id=id,
            created_at=created,
            labels=LABELS,
            metadata=s.CriPodSandboxMetadata(attempt=created),
        ),
        status=s.CriPodSandboxStatus(
            id=id,
            state=state,
            network=s.CriPodSandboxNetworkStatus(
                ip=ip, additional_ips=(s.CriPodIP(ip="fd00::1"),) if ip else ()
            ),
            linux=s.CriLinuxPodSandboxStatus(namespaces=s.CriNamespace(options=options)),
        ),
    )


def test_a_pod_has_its_newest_sandbox_and_attempt_first() -> None:
    old, new = sandbox("s1", 1, ready=False), sandbox("s2", 2)
    first, second = info(), info(sandbox="s2", id="c2", created_at=5 * SECOND)
    pod = runtime_pod("containerd", (old, new), (first, second))
    assert (pod.uid, pod.namespace, pod.name) == ("u-1", "default", "web")
    assert [(x.id, x.attempt, x.state) for x in pod.facts.sandboxes] == [
        ("s2", 2, SandboxState.READY),
        ("s1", 1, SandboxState.NOT_READY),
    ]
    assert [(x.id, x.active) for x in pod.facts.containers] == [
        ("containerd://c2", True),
        ("containerd://c1", False),
    ]
    assert pod.facts.ips == ("10.0.0.1", "fd00::1")


def test_a_stopped_sandbox_has_no_addresses() -> None:
    assert runtime_pod("x", (sandbox("s1", 1, ready=False),), ()).facts.ips == ()


def test_a_pod_on_the_hosts_network_has_no_addresses_of_its_own() -> None:
    pod = runtime_pod("x", (sandbox("s1", 1, ip="", host=True),), ())
    assert pod.facts.ips == ()
    assert pod.facts.sandboxes[0].network is NetworkMode.NODE


def test_a_container_whose_sandbox_is_gone_still_belongs_to_its_pod() -> None:
    pod = runtime_pod("x", (), (info(),))
    assert (pod.uid, pod.facts.sandboxes) == ("u-1", ())
    assert pod.facts.containers[0].active is False
