"""Init containers and sidecars: tables of runtime states and the expected actions."""

import pytest
from msgspec import structs

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Probe
from podstatus.kube.objects.runtime_facts import ContainerFacts
from podstatus.workers.actions.model import ContainerProbeVerdicts
from tests.support.container_facts import created, exited, runs, unknown
from tests.workers.pods import a_pod, actions_for, said, sidecar, with_policy, with_rule

UNKNOWN = 'Init container is in "unknown" state, try killing it before restart'
STOP = ["stop the pod"]

# Named as in upstream's TestComputePodActionsWithInitContainers.
IN_ORDER = [
    ("none yet", "Always", [], ["start i-0"]),
    ("the first runs", "Always", [runs("i")], []),
    ("the first is done", "Always", [exited("i")], ["start j-0"]),
    ("the second runs", "Always", [runs("j"), exited("i")], []),
    ("the first one's record is gone", "Always", [runs("j")], []),
    ("all are done", "Always", [exited("j"), exited("i")], ["start a-0"]),
    ("the last one's record is enough", "Always", [exited("j")], ["start a-0"]),
    ("failed", "Always", [exited("j", 1), exited("i")], ["start j-1"]),
    ("failed", "OnFailure", [exited("j", 137)], ["start j-1"]),
    ("failed", "Never", [exited("j", 137)], STOP),
    ("success is enough under any policy", "Never", [exited("j")], ["start a-0"]),
    ("unknown", "Always", [unknown("j")], [UNKNOWN, "start j-1"]),
    ("unknown", "OnFailure", [unknown("j")], [UNKNOWN, "start j-1"]),
    ("unknown", "Never", [unknown("j")], STOP),
    ("made, not started", "Never", [created("j")], ["start j-1"]),
    ("the pod runs, records are gone", "Always", [runs("a")], []),
    ("the pod ended, records are gone", "Never", [exited("a")], STOP),
    ("the pod crashes, records are gone", "Always", [exited("a", 1)], ["start a-1"]),
    ("past init, a failure is history", "Never", [runs("a"), exited("i", 1)], []),
    ("unknown whether it was past init", "Always", [unknown("a")], ["start i-0"]),
]


@pytest.mark.parametrize(("what", "policy", "attempts", "expected"), IN_ORDER)
def test_init_containers_run_one_after_another(
    what: str, policy: str, attempts: list[ContainerFacts], expected: list[str]
) -> None:
    pod = a_pod("a", init=["i", "j"], policy=policy)
    assert said(actions_for(pod, *attempts)) == expected, what


def test_init_containers_follow_their_own_policy_and_rules() -> None:
    stubborn = a_pod("a", init=[with_policy("i", "OnFailure")], policy="Never")
    assert said(actions_for(stubborn, exited("i", 1))) == ["start i-1"]
    assert said(actions_for(stubborn, unknown("i"))) == [UNKNOWN, "start i-1"]
    ruled = a_pod("a", init=[with_rule("i", "Restart", 42)], policy="Never")
    assert said(actions_for(ruled, exited("i", 42))) == ["start i-1"]
    assert said(actions_for(ruled, exited("i", 41))) == STOP


# Named as in upstream's TestComputePodActionsWithRestartableInitContainers.
SIDECARS = [
    ("none yet", "Always", [], ["start s-0"]),
    ("the first runs", "Always", [runs("s")], ["start t-0"]),
    ("both run", "Always", [runs("s"), runs("t")], ["start a-0"]),
    ("made, not started", "Always", [created("s")], ["start s-1"]),
    ("the last one ended", "Never", [runs("s"), exited("t", 137)], ["start t-1"]),
    ("success is an end too", "Never", [runs("s"), exited("t")], ["start t-1"]),
    ("both ended", "Always", [exited("s"), exited("t")], ["start s-1", "start t-1"]),
    ("the first ended", "Always", [exited("s"), runs("t")], ["start s-1", "start a-0"]),
    ("the first is forgotten", "Always", [runs("t")], ["start s-0", "start a-0"]),
    ("unknown", "Never", [runs("s"), unknown("t")], [UNKNOWN, "start t-1"]),
    ("all run", "Never", [runs("s"), runs("t"), runs("a")], []),
    ("one ended meanwhile", "Never", [runs("s"), exited("t"), runs("a")], ["start t-1"]),
    ("one is forgotten", "Never", [runs("s"), runs("a")], ["start t-0"]),
    ("the pod is done", "Never", [runs("s"), runs("t"), exited("a")], STOP),
    ("the pod crashes", "Always", [runs("s"), runs("t"), exited("a", 1)], ["start a-1"]),
]


@pytest.mark.parametrize(("what", "policy", "attempts", "expected"), SIDECARS)
@pytest.mark.parametrize("rules", [True, False])
def test_sidecars_run_as_long_as_the_pod(
    what: str, policy: str, attempts: list[ContainerFacts], expected: list[str], rules: bool
) -> None:
    pod = a_pod("a", init=[sidecar("s"), sidecar("t")], policy=policy)
    gates = FeatureGates(container_restart_rules=rules)
    assert said(actions_for(pod, *attempts, gates=gates)) == expected, what


MIXED = [
    ("the next waits for no end", [runs("s")], ["start i-0"]),
    ("init goes on beside it", [runs("s"), runs("i")], []),
    ("it is kept while init runs", [exited("s", 1), runs("i")], ["start s-1"]),
    ("init fails beside it", [runs("s"), exited("i", 1)], STOP),
    ("init is done", [runs("s"), exited("i")], ["start a-0"]),
]


@pytest.mark.parametrize(("what", "attempts", "expected"), MIXED)
def test_a_sidecar_serves_the_init_containers_behind_it(
    what: str, attempts: list[ContainerFacts], expected: list[str]
) -> None:
    pod = a_pod("a", init=[sidecar("s"), "i"], policy="Never")
    assert said(actions_for(pod, *attempts)) == expected, what


class TestProbesOfSidecars:
    """The startup probe delays the next container; the liveness probe does not."""

    POD = a_pod("a", init=[sidecar("s", startup_probe=Probe(), liveness_probe=Probe()), "i"])
    LAST = a_pod("a", init=[sidecar("s", startup_probe=Probe(termination_grace_period_seconds=4))])
    UP = ContainerProbeVerdicts(startup={"fake://s-0": True})
    STUCK = ContainerProbeVerdicts(startup={"fake://s-0": False})

    def test_one_that_has_not_started_holds_up_the_next(self) -> None:
        assert said(actions_for(self.POD, runs("s"))) == []

    def test_one_that_has_started_lets_it_go(self) -> None:
        assert said(actions_for(self.POD, runs("s"), verdicts=self.UP)) == ["start i-0"]

    def test_one_that_does_not_start_is_restarted(self) -> None:
        assert said(actions_for(self.LAST, runs("s"), verdicts=self.STUCK)) == [
            "Init container s failed startup probe within 4 s",
            "start s-1",
        ]

    def test_the_next_goes_on_while_it_is_restarted_for_liveness(self) -> None:
        verdicts = structs.replace(self.UP, liveness={"fake://s-0": False})
        assert said(actions_for(self.POD, runs("s"), verdicts=verdicts)) == [
            "Init container s failed liveness probe",
            "start s-1",
            "start i-0",
        ]

    def test_it_is_restarted_beside_the_regular_containers(self) -> None:
        verdicts = structs.replace(self.UP, liveness={"fake://s-0": False})
        assert said(actions_for(self.POD, runs("s"), runs("a"), verdicts=verdicts)) == [
            "Init container s failed liveness probe",
            "start s-1",
        ]

    def test_another_image_restarts_it(self) -> None:
        attempt = structs.replace(runs("s"), image="s:0")
        assert said(actions_for(self.POD, attempt, runs("a"), verdicts=self.UP)) == [
            "Init container s definition changed",
            "start s-1",
        ]

    def test_an_agent_that_just_came_does_not_hold_up_a_pod_that_runs(self) -> None:
        assert said(actions_for(self.POD, runs("s"), exited("a", 1))) == ["start a-1"]
