"""Pods that another pod must not block, by an internal error or by a duplicate name."""

import pytest

from podstatus.kube.objects.pod import Pod
from podstatus.pods.pod_manager import PodManager
from podstatus.sources.decide.pod_changes import PodAdded, PodReconciled, PodRemoved
from podstatus.status.counters import Counters
from podstatus.status.startup_latency_tracker import StartupLatencyTracker
from podstatus.testing.builders import make_pod
from podstatus.workers.admission.admit import AdmissionResult, Admitted
from podstatus.workers.admission.resource_fit import RequestedResources
from podstatus.workers.allocation.request_totals import PodAdmission, RequestTotals
from podstatus.workers.allocation.resize_controller import ResizeController
from podstatus.workers.dispatcher import PodDispatcher
from podstatus.workers.lifecycle.pod_registry import NoDynamicResources, PodRegistry
from podstatus.workers.lifecycle.state_machine import admitted, removed
from podstatus.workers.resize.decision import ResizeDecision
from tests.support.pod_services import PodServices, ignore


def a_pod(name: str, *, source: str = "api", uid: str = "") -> Pod:
    return make_pod(
        name, uid=uid or f"uid-{name}", annotations={"kubernetes.io/config.source": source}
    )


class World:
    """A dispatcher with idle workers and an admission by pod name."""

    def __init__(self) -> None:
        services = PodServices()
        shared = services.shared
        self.directory, self.lives = shared.pod_manager, shared.registry
        self.statuses = shared.statuses
        self.shown: list[tuple[str, Pod | None]] = []
        """What the directory had of a pod when it was said to have something new."""
        totals = RequestTotals(self.lives, services.allocations)
        self.dispatcher = PodDispatcher(
            shared,
            services.workers,
            PodAdmission(services.allocations, totals, self._admit),
            ResizeController(
                shared,
                services.allocations,
                totals,
                decide=self._decide,
                wake=services.workers.wake,
                all_sources_ready=lambda: True,
                heartbeat=ignore,
            ),
            startup_latency=StartupLatencyTracker(Counters(), clock=services.clock),
            on_mirror=ignore,
            on_pod_change=lambda uid: self.shown.append((uid, self.directory.pod_by_uid(uid))),
        )

    def _decide(self, *_: object) -> ResizeDecision:
        raise AssertionError("no pod is resized")

    def _admit(self, pod: Pod, _: RequestedResources) -> AdmissionResult:
        if pod.name == "odd":
            raise ValueError("unexpected")
        return Admitted()


def test_a_pod_that_cannot_be_judged_is_rejected_and_costs_no_other_its_life() -> None:
    world = World()
    world.dispatcher.handle(PodAdded((a_pod("a"), a_pod("odd"), a_pod("b"))))
    assert [life.name for life in world.lives.all()] == ["a", "b"]
    assert {pod.name for pod in world.directory.pods()} == {"a", "odd", "b"}
    status = world.statuses.pod_status("uid-odd")
    assert status is not None
    assert (status.phase, status.reason) == ("Failed", "UnexpectedAdmissionError")
    assert status.message == (
        "Pod was rejected: GeneralPredicates failed due to unexpected, which is unexpected."
    )


@pytest.mark.parametrize(("source", "waits"), [("file", True), ("http", True), ("api", False)])
def test_a_static_pod_waits_for_static_pods_of_its_name_alone(source: str, *, waits: bool) -> None:
    lives = PodRegistry(
        PodManager(), all_sources_ready=lambda: True, dynamic_resources=NoDynamicResources()
    )
    old = admitted(a_pod("p", source=source, uid="old"), idle=True)
    new = admitted(a_pod("p", source="file", uid="new"), idle=True)
    lives.put(removed(old) if waits else old)
    lives.put(new)
    assert lives.waits_for_static_pod(new) is waits


def test_who_looks_on_hears_of_pods_when_the_directory_has_them_and_has_them_no_more() -> None:
    world = World()
    pod = a_pod("a")
    world.dispatcher.handle(PodAdded((pod,)))
    world.dispatcher.handle(PodReconciled(pod))
    world.dispatcher.handle(PodRemoved(pod))
    assert [uid for uid, _ in world.shown] == [pod.uid] * 3
    assert [seen is not None for _, seen in world.shown] == [True, True, False]
