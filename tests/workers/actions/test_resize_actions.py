"""Actions of a pod whose allocation differs from what its containers run with."""

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Probe
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import ContainerFacts, SandboxFacts
from podstatus.workers.actions.compute import compute_pod_actions
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.actions.model import ContainerProbeVerdicts, PodActions
from podstatus.workers.resize.plan import ResizePlan
from tests.support.container_facts import exited, runs
from tests.workers.pods import (
    DEAD,
    MONOTONIC,
    READY,
    a_pod,
    facts_of,
    said,
    sidecar,
    with_rule,
)

POD = a_pod("a", "b", policy="Never")
IN_PLACE = ResizePlan(in_place={"a": "fake://a-0"})
RESTART_A = ResizePlan(restart=frozenset({"a"}))
RESTARTED = ["Container a resize requires restart", "start a-1"]


def actions_for(
    pod: Pod,
    resize: ResizePlan,
    *attempts: ContainerFacts,
    sandbox: SandboxFacts = READY,
    verdicts: ContainerProbeVerdicts | None = None,
) -> PodActions:
    return compute_pod_actions(
        pod,
        facts_of(*attempts, sandboxes=[sandbox]),
        monotonic=MONOTONIC,
        crash_loop_backoff=CrashLoopBackoff(),
        verdicts=verdicts or ContainerProbeVerdicts(),
        resize=resize,
    )


def test_without_a_difference_nothing_is_resized() -> None:
    actions = actions_for(POD, ResizePlan(), runs("a"), runs("b"))
    assert (said(actions), actions.resize) == ([], None)


def test_a_container_is_resized_while_it_runs() -> None:
    actions = actions_for(POD, IN_PLACE, runs("a"), runs("b"))
    assert (said(actions), actions.resize) == ([], {"a": "fake://a-0"})


def test_the_pod_level_is_resized_without_its_containers() -> None:
    assert actions_for(POD, ResizePlan(pod_level=True), runs("a"), runs("b")).resize == {}


def test_a_container_is_restarted_for_a_resize_whatever_its_policy() -> None:
    actions = actions_for(POD, RESTART_A, runs("a"), runs("b"))
    assert (said(actions), actions.resize) == (RESTARTED, {})


def test_the_last_container_is_restarted_for_a_resize_too() -> None:
    assert said(actions_for(POD, RESTART_A, runs("a"), exited("b"))) == RESTARTED


def test_a_sidecar_is_restarted_for_a_resize_and_the_others_go_on() -> None:
    pod = a_pod("b", init=[sidecar("a")])
    assert said(actions_for(pod, RESTART_A, runs("a"), runs("b"))) == RESTARTED
    assert said(actions_for(pod, RESTART_A, runs("a"))) == [*RESTARTED, "start b-0"]


def test_a_sidecar_that_has_not_started_holds_up_the_next_during_a_resize() -> None:
    pod = a_pod("b", init=[sidecar("a", startup_probe=Probe())])
    assert said(actions_for(pod, RESTART_A, runs("a"))) == RESTARTED


def test_a_failed_probe_goes_before_a_resize() -> None:
    verdicts = ContainerProbeVerdicts(liveness={"fake://a-0": False})
    actions = actions_for(POD, RESTART_A, runs("a"), runs("b"), verdicts=verdicts)
    assert (said(actions), actions.resize) == (["Container a failed liveness probe"], None)
    pod = a_pod("b", init=[sidecar("a")])
    actions = actions_for(pod, RESTART_A, runs("a"), runs("b"), verdicts=verdicts)
    assert said(actions) == ["Init container a failed liveness probe", "start a-1"]


@pytest.mark.parametrize(("name", "resize"), [("a", {}), ("b", None)])
def test_the_start_of_an_idle_container_with_its_allocation_is_a_resize(
    name: str, resize: dict[str, str] | None
) -> None:
    plan = ResizePlan(idle=frozenset({"a"}))
    others = {"a": runs("b"), "b": runs("a")}
    actions = actions_for(POD, plan, others[name])
    assert (said(actions), actions.resize) == ([f"start {name}-0"], resize)


def test_a_pod_that_stops_needs_no_resize() -> None:
    actions = actions_for(POD, IN_PLACE, exited("a"), exited("b"))
    assert (said(actions), actions.resize) == (["stop the pod"], None)


def test_a_new_sandbox_has_the_allocated_size() -> None:
    pod = structs.replace(POD, spec=structs.replace(POD.spec, restart_policy="Always"))
    actions = actions_for(pod, IN_PLACE, runs("a"), runs("b"), sandbox=DEAD)
    assert (actions.start_pod, actions.resize) == (True, None)
    assert actions_for(POD, IN_PLACE, exited("a"), exited("b"), sandbox=DEAD).resize is None


def test_containers_that_are_removed_are_not_resized() -> None:
    pod = a_pod(with_rule("a", "RestartAllContainers", 88), "b")
    actions = actions_for(pod, ResizePlan(in_place={"b": "fake://b-0"}), exited("a", 88), runs("b"))
    assert actions.remove
    assert actions.resize is None
