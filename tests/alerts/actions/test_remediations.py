"""Remediations: errors say why, and other objects are left alone."""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from podstatus.alerts.actions.remediations import AlertPods, DeletePod, RestartContainer
from podstatus.alerts.model import Action, Alert, AlertId, Subject
from podstatus.alerts.ports import ActionError, RetryableError
from podstatus.kube.api_errors import (
    ApiError,
    BusyError,
    ConflictError,
    DeniedError,
    GoneError,
    RejectedError,
    UnavailableError,
)
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import ApiUID, Pod, PodUID
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.pods.pod_manager import PodManager
from podstatus.runtime.port import RuntimePod
from podstatus.testing.builders import make_pod

STATIC = {"kubernetes.io/config.source": "file"}


def alert(pod: Pod | None = None, rule: str = "Bad") -> Alert:
    subject = Subject(scope="node", name="n", node="n")
    if pod is not None:
        subject = Subject(scope="pod", name=pod.name, namespace=pod.namespace, uid=pod.uid)
    return Alert(id=AlertId("1"), rule=rule, subject=subject, state="firing", since=1, fired=2)


def action(kind: str, **options: str) -> Action:
    return Action(kind=kind, options=options)


def a_pod(policy: str = "Always", own: str | None = None, **changed: Any) -> Pod:
    """Containers a and b, and a sidecar; `own` is the policy of a."""
    pod = make_pod("p", namespace="ns", **changed)
    containers = (Container(name="a", restart_policy=own), Container(name="b"))
    init = (Container(name="side", restart_policy="Always"), Container(name="init"))
    spec = structs.replace(
        pod.spec, restart_policy=policy, containers=containers, init_containers=init
    )
    return structs.replace(pod, spec=spec)


class Running:
    """A partial `Pleg`, with these running containers."""

    def __init__(self, *names: str, has_listed: bool = True) -> None:
        self.names = names
        self.has_listed = has_listed

    def find(self, uid: PodUID) -> RuntimePod | None:
        containers = tuple(
            ContainerFacts(name=name, id=f"id-{name}", state=ContainerRunState.RUNNING)
            for name in self.names
        )
        return RuntimePod(uid=uid, namespace="ns", name="p", facts=PodFacts(containers=containers))


class Book:
    """A partial `ProbeResultStore` that records restart requests."""

    def __init__(self) -> None:
        self.restarted: list[str] = []

    def request_restart(self, uid: PodUID, container_id: str) -> None:
        self.restarted.append(container_id)


def known(*pods: Pod, all_known: bool = True) -> AlertPods:
    return AlertPods(PodManager(pods), is_synced=lambda: all_known)


def restart(pod: Pod, *running: str, **options: str) -> tuple[str, list[str]]:
    book = Book()
    change = RestartContainer(
        known(pod),
        Running(*running),  # type: ignore[arg-type]
        book,  # type: ignore[arg-type]
    )
    asked = action("restartContainer", **options)
    said = change.describe(asked, alert(pod))
    asyncio.run(change.apply(asked, alert(pod)))
    return said, book.restarted


def test_all_containers_that_run_are_restarted_or_the_one_that_is_named() -> None:
    ids = ["id-a", "id-b", "id-side"]
    said = "restart containers a, b, side"
    assert restart(a_pod(), "a", "b", "side", "init") == (said, ids)
    assert restart(a_pod(), "a", "b", container="b") == ("restart container b", ["id-b"])


def test_what_would_not_start_again_is_left_alone() -> None:
    assert restart(a_pod("Never"), "a", "b", "side")[1] == ["id-side"]
    assert restart(a_pod("Never", own="Always"), "a", "b")[1] == ["id-a"]


@pytest.mark.parametrize(
    ("pod", "running", "options", "why"),
    [
        (a_pod("Never"), ["a"], {}, "no container that would be restarted is running"),
        (a_pod(), [], {}, "no container that would be restarted is running"),
        (a_pod(), ["a"], {"container": "b"}, "no container that would be restarted is running"),
        (a_pod(), ["a"], {"container": "x"}, "no container x"),
        (a_pod(), ["a"], {"container": "init"}, "no container init"),
    ],
)
def test_what_cannot_be_restarted_is_said(
    pod: Pod, running: list[str], options: dict[str, str], why: str
) -> None:
    with pytest.raises(ActionError, match=why):
        restart(pod, *running, **options)


class Server:
    """A pod API that fails with these errors in turn."""

    def __init__(self, *failures: ApiError) -> None:
        self.failures = list(failures)
        self.deleted: list[tuple[str, str, ApiUID, int | None]] = []

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)

    async def delete_pod(
        self, namespace: str, name: str, *, uid: ApiUID, grace_period_seconds: int | None
    ) -> None:
        self._fail()
        self.deleted.append((namespace, name, uid, grace_period_seconds))


def delete(pod: Pod, server: Server, **options: str) -> str:
    change = DeletePod(known(pod), server)  # type: ignore[arg-type]
    asked = action("deletePod", **options)
    said = change.describe(asked, alert(pod))
    asyncio.run(change.apply(asked, alert(pod)))
    return said


def test_a_pod_is_deleted_by_its_uid() -> None:
    pod, server = a_pod(), Server()
    assert delete(pod, server) == "delete the pod"
    assert (
        delete(pod, server, gracePeriodSeconds="0") == "delete the pod with a grace period of 0 s"
    )
    uid = ApiUID(pod.uid)
    assert server.deleted == [("ns", "p", uid, None), ("ns", "p", uid, 0)]


def test_a_static_pod_is_never_deleted() -> None:
    server = Server()
    with pytest.raises(ActionError, match="static"):
        delete(a_pod(annotations=STATIC), server)
    assert server.deleted == []


def critical(priority: int | None = None, name: str = "") -> Pod:
    """The pod ns/p with this priority or priority class."""
    pod = a_pod()
    spec = structs.replace(pod.spec, priority=priority, priority_class_name=name)
    return structs.replace(pod, spec=spec)


@pytest.mark.parametrize(
    "pod",
    [
        critical(name="system-node-critical"),
        critical(name="system-cluster-critical"),
        critical(2_000_001_000, "system-node-critical"),
        critical(2_000_000_000),
    ],
)
@pytest.mark.parametrize("names", ["", "ns/other", "other/p", "ns/p-*", "*", "p"])
def test_a_critical_pod_is_neither_deleted_nor_restarted_unless_named(pod: Pod, names: str) -> None:
    server = Server()
    with pytest.raises(ActionError, match=r"critical; .* add ns/p to|of priority .* add ns/p to"):
        delete(pod, server, criticalPods=names)
    with pytest.raises(ActionError, match="to criticalPods"):
        restart(pod, "a", criticalPods=names)
    # Also if it became critical after `describe`.
    with pytest.raises(ActionError, match="to criticalPods"):
        asyncio.run(
            DeletePod(known(pod), server).apply(  # type: ignore[arg-type]
                action("deletePod", criticalPods=names), alert(pod)
            )
        )
    assert server.deleted == []


@pytest.mark.parametrize("names", ["ns/p", "a/b, ns/p", "ns/p*"])
def test_a_critical_pod_that_is_named_is_deleted_and_restarted(names: str) -> None:
    pod, server = critical(name="system-node-critical"), Server()
    assert delete(pod, server, criticalPods=names) == "delete the pod"
    assert len(server.deleted) == 1
    assert restart(pod, "a", criticalPods=names)[1] == ["id-a"]


def test_any_priority_of_users_is_no_reason() -> None:
    assert delete(critical(1_000_000_000, "mine"), Server()) == "delete the pod"


@pytest.mark.parametrize("gone", [GoneError("x"), ConflictError("x")])
def test_a_pod_that_is_gone_or_another_by_now_is_no_trouble(gone: ApiError) -> None:
    server = Server(gone)
    delete(a_pod(), server)
    assert server.deleted == []


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (DeniedError("no"), ActionError),
        (RejectedError("no"), ActionError),
        (BusyError("later"), RetryableError),
        (UnavailableError("away"), RetryableError),
    ],
)
def test_a_rejection_and_an_outage_raise_different_errors(
    failure: ApiError, kind: type[ActionError]
) -> None:
    with pytest.raises(ActionError) as raised:
        delete(a_pod(), Server(failure))
    assert type(raised.value) is kind


def test_an_alert_about_a_node_restarts_and_deletes_nothing() -> None:
    with pytest.raises(ActionError, match="not about a pod"):
        DeletePod(known(), Server()).describe(  # type: ignore[arg-type]
            action("deletePod"), alert()
        )
    with pytest.raises(ActionError, match="no longer on this node"):
        DeletePod(known(), Server()).describe(  # type: ignore[arg-type]
            action("deletePod"), alert(a_pod())
        )


def test_what_an_agent_has_yet_to_learn_after_its_start_is_waited_for() -> None:
    """After a restart, the pod of a restored alert is not known at first."""
    deletes = DeletePod(known(all_known=False), Server())  # type: ignore[arg-type]
    with pytest.raises(RetryableError, match="pods of this node are not known"):
        deletes.describe(action("deletePod"), alert(a_pod()))
    restarts = RestartContainer(
        known(a_pod()),
        Running(has_listed=False),  # type: ignore[arg-type]
        Book(),  # type: ignore[arg-type]
    )
    with pytest.raises(RetryableError, match="running containers"):
        restarts.describe(action("restartContainer"), alert(a_pod()))
