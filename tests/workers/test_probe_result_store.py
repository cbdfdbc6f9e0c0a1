"""Probe results: their immediate and later effects."""

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Probe
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.runtime.port import ProbeResult
from podstatus.workers.actions.model import ContainerProbeVerdicts
from podstatus.workers.probe_result_store import ProbeResultStore
from tests.support.node_in_memory import NodeInMemory, a_pod

UID = PodUID("u")


class Shown:
    """A status sink that records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, bool]] = []

    def set_container_readiness(self, pod_uid: str, container_id: str, *, ready: bool) -> None:
        self.calls.append(("ready", container_id, ready))

    def set_container_startup(self, pod_uid: str, container_id: str, *, started: bool) -> None:
        self.calls.append(("started", container_id, started))


def result(probe: str, *, success: bool, container: str = "c") -> ProbeResult:
    return ProbeResult(uid=UID, container="a", container_id=container, probe=probe, success=success)


def probed(pod: Pod, *probes: str) -> Pod:
    """The pod with these probes on its first container."""
    assert pod.spec.containers is not None
    first, *others = pod.spec.containers
    first = structs.replace(first, **{f"{probe}_probe": Probe() for probe in probes})
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=(first, *others)))


@pytest.mark.parametrize(
    ("probe", "success", "calls", "woken"),
    [
        ("readiness", True, [("ready", "c", True)], []),
        ("readiness", False, [("ready", "c", False)], []),
        ("startup", True, [("started", "c", True)], [UID]),
        ("startup", False, [], [UID]),
        ("liveness", False, [], [UID]),
    ],
)
def test_what_follows_from_a_result(
    probe: str, success: bool, calls: list[tuple[str, str, bool]], woken: list[PodUID]
) -> None:
    shown, looked_at = Shown(), list[PodUID]()
    book = ProbeResultStore(shown, looked_at.append, lambda _: None)
    book.record(result(probe, success=success))
    assert (shown.calls, looked_at) == (calls, woken)


def test_a_result_that_is_known_changes_nothing() -> None:
    shown, looked_at = Shown(), list[PodUID]()
    book = ProbeResultStore(shown, looked_at.append, lambda _: None)
    for _ in range(3):
        book.record(result("liveness", success=False))
        book.record(result("readiness", success=True))
    assert (shown.calls, looked_at) == ([("ready", "c", True)], [UID])


def test_verdicts_are_kept_by_container_until_the_pod_is_forgotten() -> None:
    book = ProbeResultStore(Shown(), lambda _: None, lambda _: None)
    book.record(result("liveness", success=False))
    book.record(result("startup", success=True, container="d"))
    assert book.verdicts(UID) == ContainerProbeVerdicts(startup={"d": True}, liveness={"c": False})
    book.retain_only({UID})
    assert book.verdicts(UID) == ContainerProbeVerdicts(startup={"d": True}, liveness={"c": False})
    book.retain_only(set())
    assert book.verdicts(UID) == ContainerProbeVerdicts()


async def test_readiness_is_shown_without_a_look_at_the_pod(node: NodeInMemory) -> None:
    node.create(probed(a_pod("p", "ready=-4s+5s-5s+"), "readiness"))
    await node.passes(0.5)
    node.runtime.is_down = True  # so no sync could succeed
    await node.passes(20)
    assert node.shown_at("p")[1:] == [
        (0.0, "Running a:running"),
        (4.0, "Running a:running+"),
        (9.0, "Running a:running"),
        (14.0, "Running a:running+"),
    ]


async def test_a_container_that_is_not_alive_is_restarted(node: NodeInMemory) -> None:
    node.create(probed(a_pod("p", "alive=+3s-, stop-exit=2; alive=+"), "liveness"))
    await node.passes(10)
    assert node.shown_at("p")[1:] == [
        (0.0, "Running a:running+"),
        (3.0, "Running a:running+(1)"),
    ]
    assert node.events("p", "Killing") == [
        "Killing: Container a failed liveness probe, will be restarted"
    ]


async def test_a_requested_restart_happens_once(node: NodeInMemory) -> None:
    node.create(a_pod("p", "start=0s"))
    await node.passes(3)
    (pod,) = node.agent.directory.pods()
    (attempt,) = (await node.runtime.list_pods(pod.uid))[0].facts.containers
    node.agent.book.request_restart(pod.uid, attempt.id)
    await node.passes(30)
    assert node.looks("p") == "Running a:running+(1)"
    assert node.events("p", "Killing") == [
        "Killing: Container a restart requested, will be restarted"
    ]


async def test_a_failed_liveness_probe_ends_a_pod_without_restarts(node: NodeInMemory) -> None:
    pod = a_pod("p", "alive=+3s-, stop-exit=2", policy="Never")
    node.create(probed(pod, "liveness"))
    await node.passes(10)
    assert node.looks("p") == "Failed a:exit-2"


async def test_a_slow_container_is_not_ready_before_it_has_started(node: NodeInMemory) -> None:
    node.create(probed(a_pod("p", "started=?4s+, ready=+"), "startup", "readiness"))
    await node.passes(10)
    assert node.shown_at("p")[1:] == [(0.0, "Running a:running"), (4.0, "Running a:running+")]


async def test_what_a_probe_said_outlives_no_restart_of_its_container(node: NodeInMemory) -> None:
    node.create(probed(a_pod("p", "run=5s, ready=+; ready=?3s+"), "readiness"))
    await node.passes(6)
    assert node.looks("p") == "Running a:running(1)"
    await node.passes(3)
    assert node.looks("p") == "Running a:running+(1)"


def test_who_tells_of_failures_hears_of_each_once() -> None:
    unhealthy: list[ProbeResult] = []
    book = ProbeResultStore(Shown(), lambda _: None, unhealthy.append)
    for success in (True, False, False, True, False):
        book.record(result("readiness", success=success))
    assert unhealthy == 2 * [result("readiness", success=False)]
