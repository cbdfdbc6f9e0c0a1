"""Pod actions: tables of runtime states and the expected actions."""

import pytest
from msgspec import structs

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Probe
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    NetworkMode,
    SandboxFacts,
    SandboxState,
)
from podstatus.kube.scalars.time import Time
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.actions.model import ContainerKind, ContainerProbeVerdicts
from tests.support.container_facts import created, exited, runs, unknown
from tests.workers.pods import (
    DEAD,
    MONOTONIC,
    NOW,
    READY,
    a_pod,
    actions_for,
    said,
    sidecar,
    with_policy,
    with_rule,
)

UNKNOWN_A = 'Container is in "unknown" state, try killing it before restart'
STOP = ["stop the pod"]


def crash_loop(
    pod: Pod, container: str, *, before: CrashLoopBackoff | None = None
) -> CrashLoopBackoff:
    """The container exited 20 s ago for the first time, and was restarted at once."""
    at = 20 * 10**9
    then = Time(NOW - at)
    loops = before or CrashLoopBackoff()
    return loops.started(pod.uid, container, then, then, MONOTONIC - at)


def cut_off(attempt: ContainerFacts) -> ContainerFacts:
    """The attempt, in an abandoned sandbox."""
    return structs.replace(attempt, active=False)


# Named as in upstream's TestComputePodActions.
REGULAR = [
    ("all run", "Always", [runs("a"), runs("b")], []),
    ("nothing yet", "Always", [], ["start a-0", "start b-0"]),
    ("success", "Always", [exited("a"), runs("b")], ["start a-1"]),
    ("failure", "Always", [exited("a", 1), runs("b")], ["start a-1"]),
    ("success", "OnFailure", [exited("a"), runs("b")], []),
    ("failure", "OnFailure", [exited("a", 1), runs("b")], ["start a-1"]),
    ("success", "Never", [exited("a"), runs("b")], []),
    ("failure", "Never", [exited("a", 1), runs("b")], []),
    ("one not yet", "Never", [exited("a", 1)], ["start b-0"]),
    ("made, not started", "OnFailure", [created("a"), exited("b")], ["start a-1"]),
    ("made, not started", "Never", [created("a"), runs("b")], ["start a-1"]),
    ("unknown", "Never", [unknown("a"), runs("b")], [UNKNOWN_A, "start a-1"]),
    ("all succeeded", "OnFailure", [exited("a"), exited("b")], STOP),
    ("all ended", "Never", [exited("a", 1), exited("b")], STOP),
    ("odd policy is Always", "Odd", [exited("a"), runs("b")], ["start a-1"]),
    ("third attempt", "Always", [exited("a", 1, 2), exited("a", 1, 1), runs("b")], ["start a-3"]),
]


@pytest.mark.parametrize(("what", "policy", "attempts", "expected"), REGULAR)
@pytest.mark.parametrize("rules", [True, False])
def test_regular_containers_follow_the_policy_of_the_pod(
    what: str, policy: str, attempts: list[ContainerFacts], expected: list[str], rules: bool
) -> None:
    gates = FeatureGates(container_restart_rules=rules)
    pod = a_pod("a", "b", policy=policy)
    assert said(actions_for(pod, *attempts, gates=gates)) == expected, what


OWN_POLICIES = [
    ("Always", "Never", exited("a"), ["start a-1"]),
    ("OnFailure", "Never", exited("a", 1), ["start a-1"]),
    ("OnFailure", "Never", exited("a"), []),
    ("Never", "Always", exited("a", 1), []),
]


@pytest.mark.parametrize(("own", "policy", "attempt", "expected"), OWN_POLICIES)
def test_a_policy_of_its_own_is_stronger(
    own: str, policy: str, attempt: ContainerFacts, expected: list[str]
) -> None:
    pod = a_pod(with_policy("a", own), "b", policy=policy)
    assert said(actions_for(pod, attempt, runs("b"))) == expected


def test_without_the_gate_its_own_policy_says_nothing() -> None:
    gates = FeatureGates(container_restart_rules=False)
    pod = a_pod(with_policy("a", "Never"), "b")
    assert said(actions_for(pod, exited("a"), runs("b"), gates=gates)) == ["start a-1"]
    pod = a_pod(with_policy("a", "Always"), "b", policy="Never")
    assert said(actions_for(pod, exited("a"), runs("b"), gates=gates)) == []
    verdicts = ContainerProbeVerdicts(liveness={"fake://a-0": False})
    assert said(actions_for(pod, runs("a"), runs("b"), verdicts=verdicts, gates=gates)) == [
        "Container a failed liveness probe"
    ]


def test_a_rule_restarts_what_the_policy_would_not() -> None:
    pod = a_pod(with_rule("a", "Restart", 42), policy="Never")
    assert said(actions_for(pod, exited("a", 42))) == ["start a-1"]
    assert said(actions_for(pod, exited("a", 41))) == STOP


OTHER_BOXES = [
    ("none", []),
    ("dead", [DEAD]),
    ("two", [READY, structs.replace(READY, id="box-1")]),
    ("the older one is ready", [DEAD, READY]),
    ("no address", [structs.replace(READY, ip="")]),
    ("in the network of the node", [structs.replace(READY, network=NetworkMode.NODE)]),
]


@pytest.mark.parametrize(("what", "sandboxes"), OTHER_BOXES)
def test_without_a_usable_sandbox_a_new_one_is_created(
    what: str, sandboxes: list[SandboxFacts]
) -> None:
    actions = actions_for(a_pod("a"), runs("a"), sandboxes=sandboxes)
    assert said(actions) == ["stop the pod", "make a sandbox", "start a-1"], what


def test_a_sandbox_without_a_reported_ip_is_usable() -> None:
    box = SandboxFacts(state=SandboxState.READY)
    assert said(actions_for(a_pod("a"), runs("a"), sandboxes=[box])) == []


def test_a_new_pod_has_nothing_to_stop() -> None:
    assert said(actions_for(a_pod("a"), sandboxes=[])) == ["make a sandbox", "start a-0"]


NEW_SANDBOX = ["stop the pod", "make a sandbox"]
# Upstream uses the pod's restart policy alone; rows that differ are marked.
SANDBOX_DIED = [
    (
        "all of them",
        a_pod("a", "b"),
        [exited("a"), runs("b")],
        [*NEW_SANDBOX, "start a-1", "start b-1"],
    ),
    (
        "but who succeeded",
        a_pod("a", "b", policy="OnFailure"),
        [exited("a"), runs("b")],
        [*NEW_SANDBOX, "start b-1"],
    ),
    ("all succeeded", a_pod("a", "b", policy="OnFailure"), [exited("a"), exited("b")], []),
    ("all ended", a_pod("a", policy="Never"), [exited("a", 1)], []),
    ("cut off for good", a_pod("a", policy="Never"), [runs("a")], STOP),
    ("never started", a_pod("a", policy="Never"), [], [*NEW_SANDBOX, "start a-0"]),
    ("made, not started", a_pod("a", policy="Never"), [created("a")], [*NEW_SANDBOX, "start a-1"]),
    (
        "init is next",
        a_pod("a", init=["i", "j"]),
        [exited("j"), exited("i"), runs("a")],
        [*NEW_SANDBOX[:1], "remove i-0", "remove j-0", *NEW_SANDBOX[1:], "start i-1"],
    ),
    ("init failed for good", a_pod("a", init=["i"], policy="Never"), [exited("i", 1)], []),
    ("init is cut off for good", a_pod("a", init=["i"], policy="Never"), [runs("i")], STOP),
    (
        "init failed and comes back",
        a_pod("a", init=["i"], policy="OnFailure"),
        [exited("i", 137)],
        [*NEW_SANDBOX[:1], "remove i-0", *NEW_SANDBOX[1:], "start i-1"],
    ),
    (
        "differs: upstream leaves it Pending for ever",
        a_pod("a", init=["i"], policy="Never"),
        [exited("i")],
        [*NEW_SANDBOX[:1], "remove i-0", *NEW_SANDBOX[1:], "start i-1"],
    ),
    (
        "differs: upstream leaves it Running for ever",
        a_pod(with_policy("a", "Always"), policy="Never"),
        [exited("a")],
        [*NEW_SANDBOX, "start a-1"],
    ),
    (
        "differs: upstream starts a again, against its policy",
        a_pod(with_policy("a", "Never"), "b"),
        [exited("a"), runs("b")],
        [*NEW_SANDBOX, "start b-1"],
    ),
    (
        "a sidecar and an init container that was never reached are no failures",
        a_pod("a", init=[sidecar("s"), "i"], policy="Never"),
        [runs("s")],
        [*NEW_SANDBOX[:1], "remove s-0", *NEW_SANDBOX[1:], "start s-1"],
    ),
    (
        "sidecars alone do not come back",
        a_pod("a", init=[sidecar("s")], policy="Never"),
        [exited("a"), exited("s", 137)],
        [],
    ),
]


@pytest.mark.parametrize(("what", "pod", "attempts", "expected"), SANDBOX_DIED)
def test_in_another_sandbox_runs_what_has_not_ended_for_good(
    what: str, pod: Pod, attempts: list[ContainerFacts], expected: list[str]
) -> None:
    assert said(actions_for(pod, *attempts, sandboxes=[DEAD])) == expected, what


def test_a_start_says_what_kind_of_container_it_is() -> None:
    def kinds(pod: Pod, *attempts: ContainerFacts, box: SandboxFacts) -> list[ContainerKind]:
        return [start.kind for start in actions_for(pod, *attempts, sandboxes=[box]).start]

    plain, with_init = a_pod("a"), a_pod("a", init=["i"])
    for box in (READY, DEAD):
        assert kinds(plain, box=box) == [ContainerKind.REGULAR]
        assert kinds(with_init, box=box) == [ContainerKind.INIT]
    assert kinds(with_init, exited("i"), box=READY) == [ContainerKind.REGULAR]


def test_a_regular_container_of_an_old_sandbox_does_not_tell_that_init_is_done() -> None:
    pod = a_pod("a", init=["i"])
    assert said(actions_for(pod, cut_off(exited("a", 1)))) == ["start i-0"]
    assert said(actions_for(pod, cut_off(exited("i")))) == ["start i-1"]


def test_init_containers_of_an_old_sandbox_have_to_run_again() -> None:
    pod = a_pod("a", init=["i", "j"])
    old = [cut_off(exited("j")), cut_off(exited("i"))]
    assert said(actions_for(pod, *old)) == ["start i-1"]
    assert said(actions_for(pod, exited("i", number=1), *old)) == ["start j-1"]


class TestFaults:
    """Running containers that must be stopped."""

    PROBED = a_pod(
        with_policy(
            "a",
            "Always",
            liveness_probe=Probe(termination_grace_period_seconds=3),
            startup_probe=Probe(termination_grace_period_seconds=5),
        ),
        "b",
    )
    DEAD_A = ContainerProbeVerdicts(liveness={"fake://a-0": False})
    STUCK_A = ContainerProbeVerdicts(startup={"fake://a-0": False})

    def test_a_failed_liveness_probe(self) -> None:
        actions = actions_for(self.PROBED, runs("a"), runs("b"), verdicts=self.DEAD_A)
        assert said(actions) == [
            "Container a failed liveness probe, will be restarted within 3 s",
            "start a-1",
        ]

    def test_a_failed_startup_probe(self) -> None:
        actions = actions_for(self.PROBED, runs("a"), runs("b"), verdicts=self.STUCK_A)
        assert said(actions) == [
            "Container a failed startup probe, will be restarted within 5 s",
            "start a-1",
        ]

    def test_a_requested_restart_stops_the_container(self) -> None:
        verdicts = ContainerProbeVerdicts(restart_requested=frozenset({"fake://a-0"}))
        actions = actions_for(self.PROBED, runs("a"), runs("b"), verdicts=verdicts)
        assert said(actions) == [
            "Container a restart requested, will be restarted",
            "start a-1",
        ]
        assert said(actions_for(self.PROBED, runs("a", 1), runs("b"), verdicts=verdicts)) == []

    def test_a_probe_without_a_grace_leaves_it_to_the_pod(self) -> None:
        pod = a_pod(with_policy("a", "Always", liveness_probe=Probe()))
        assert actions_for(pod, runs("a"), verdicts=self.DEAD_A).stop[0].grace_seconds is None

    def test_a_pod_without_a_grace_has_none_to_change(self) -> None:
        pod = structs.replace(
            self.PROBED,
            spec=structs.replace(self.PROBED.spec, termination_grace_period_seconds=None),
        )
        actions = actions_for(pod, runs("a"), runs("b"), verdicts=self.DEAD_A)
        assert actions.stop[0].grace_seconds is None

    def test_a_verdict_on_an_older_attempt_says_nothing(self) -> None:
        attempts = [runs("a", 1), exited("a", 1), runs("b")]
        assert said(actions_for(self.PROBED, *attempts, verdicts=self.DEAD_A)) == []

    def test_success_is_no_fault(self) -> None:
        verdicts = ContainerProbeVerdicts(
            liveness={"fake://a-0": True}, startup={"fake://a-0": True}
        )
        assert said(actions_for(self.PROBED, runs("a"), runs("b"), verdicts=verdicts)) == []

    def test_it_is_stopped_and_stays_so_if_others_go_on(self) -> None:
        pod = a_pod("a", "b", policy="Never")
        actions = actions_for(pod, runs("a"), runs("b"), verdicts=self.DEAD_A)
        assert said(actions) == ["Container a failed liveness probe"]

    def test_the_last_one_takes_the_pod_with_it(self) -> None:
        """Its event is `Stopping container a`, and the pod's grace period applies."""
        pod = a_pod("a", "b", policy="Never")
        assert said(actions_for(pod, runs("a"), exited("b"), verdicts=self.DEAD_A)) == STOP

    def test_another_image_restarts_it_whatever_the_policy(self) -> None:
        pod = a_pod("a", policy="Never")
        attempt = structs.replace(runs("a"), image="a:0")
        assert said(actions_for(pod, attempt)) == [
            "Container a definition changed, will be restarted",
            "start a-1",
        ]

    def test_an_unreported_image_counts_as_unchanged(self) -> None:
        assert said(actions_for(a_pod("a"), structs.replace(runs("a"), image=""))) == []

    def test_it_may_have_to_wait_before_it_is_restarted(self) -> None:
        loops = crash_loop(self.PROBED, "a")
        older = structs.replace(exited("a", 1), finished_at=Time(NOW - 4 * 10**9))
        verdicts = ContainerProbeVerdicts(liveness={"fake://a-1": False})
        attempts = [runs("a", 1), older, runs("b")]
        actions = actions_for(self.PROBED, *attempts, verdicts=verdicts, crash_loops=loops)
        assert said(actions) == [
            "Container a failed liveness probe, will be restarted within 3 s",
            "wait with a",
        ]
        assert actions.requeue_after == 6


class TestRestartAllContainers:
    """The exit of a container requests a restart of the whole pod."""

    POD = a_pod(
        with_rule("a", "RestartAllContainers", 88), "b", init=["i", sidecar("s")], policy="Never"
    )

    def test_all_is_stopped_without_grace_and_forgotten_the_source_last(self) -> None:
        attempts = [exited("a", 88), runs("b"), exited("i"), runs("s", 1), exited("s", 1)]
        actions = actions_for(self.POD, *attempts)
        assert [stop.container for stop in actions.stop] == [runs("b"), runs("s", 1)]
        assert said(actions) == [
            "killing within 0 s",
            "killing within 0 s",
            "remove b-0",
            "remove i-0",
            "remove s-1",
            "remove s-0",
            "remove a-0",
        ]

    def test_it_begins_with_init_when_all_is_gone(self) -> None:
        assert said(actions_for(self.POD)) == ["start i-0"]

    def test_it_goes_on_where_it_was_cut_short(self) -> None:
        assert said(actions_for(self.POD, exited("a", 88))) == ["remove a-0"]

    def test_another_exit_asks_for_nothing(self) -> None:
        attempts = [exited("a", 87), runs("b"), exited("i"), runs("s")]
        assert said(actions_for(self.POD, *attempts)) == []

    def test_an_ephemeral_container_stays(self) -> None:
        pod = a_pod(with_rule("a", "RestartAllContainers", 88), ephemeral=["d"])
        assert said(actions_for(pod, exited("a", 88), runs("d"))) == ["remove a-0"]

    def test_with_a_dead_sandbox_comes_another(self) -> None:
        attempts = [exited("a", 88), runs("b"), exited("i")]
        assert said(actions_for(self.POD, *attempts, sandboxes=[DEAD])) == [
            "stop the pod",
            "remove b-0",
            "remove i-0",
            "remove a-0",
            "make a sandbox",
        ]

    def test_without_the_gate_the_policy_counts(self) -> None:
        gates = FeatureGates(restart_all_containers_on_container_exits=False)
        attempts = [exited("a", 88), runs("b"), exited("i"), runs("s")]
        assert said(actions_for(self.POD, *attempts, gates=gates)) == []


class TestEphemeralContainers:
    """Ephemeral containers start once."""

    POD = a_pod("a", init=["i"], ephemeral=["d", "e"])

    @pytest.mark.parametrize(
        "attempt",
        [runs("d"), exited("d"), exited("d", 1), unknown("d"), created("d")],
        ids=lambda attempt: attempt.state.value,
    )
    def test_one_that_was_made_is_left_alone(self, attempt: ContainerFacts) -> None:
        actions = actions_for(self.POD, runs("a"), exited("i"), attempt)
        assert said(actions) == ["start e-0"]
        assert actions.start[0].kind is ContainerKind.EPHEMERAL

    def test_they_do_not_wait_for_init(self) -> None:
        assert said(actions_for(self.POD, runs("i"))) == ["start d-0", "start e-0"]

    def test_they_keep_no_pod_alive(self) -> None:
        pod = a_pod("a", ephemeral=["d"], policy="Never")
        assert said(actions_for(pod, exited("a"), runs("d"))) == STOP
        assert said(actions_for(pod, exited("a"))) == STOP

    def test_they_come_after_another_sandbox(self) -> None:
        pod = a_pod("a", ephemeral=["d"])
        actions = actions_for(pod, runs("a"), sandboxes=[DEAD])
        assert said(actions) == [*NEW_SANDBOX, "start a-1"]


class TestDone:
    """No container has to run any more."""

    POD = a_pod("a", init=[sidecar("s")], policy="Never")

    def test_the_sidecar_is_stopped_when_the_others_are_done(self) -> None:
        assert said(actions_for(self.POD, runs("s"), exited("a"))) == STOP

    def test_an_exited_sidecar_does_not_restart_without_other_containers(self) -> None:
        assert said(actions_for(self.POD, exited("s", 1), exited("a"))) == STOP

    def test_what_is_stopped_is_not_stopped_again(self) -> None:
        stopped = [exited("s", 1), exited("a")]
        assert said(actions_for(self.POD, *stopped, sandboxes=[DEAD])) == []

    def test_a_pod_that_is_deleted_is_left_to_those_who_end_it(self) -> None:
        metadata = structs.replace(self.POD.metadata, deletion_timestamp=NOW)
        pod = structs.replace(self.POD, metadata=metadata)
        assert said(actions_for(pod)) == []
        assert said(actions_for(pod, exited("a"), sandboxes=[DEAD])) == []


class TestBackOff:
    """Starts that are delayed by a back-off."""

    POD = a_pod("a", "b")
    LOOPS = crash_loop(POD, "a")

    def test_it_waits_and_says_so(self) -> None:
        ended = structs.replace(exited("a", 1), finished_at=Time(NOW - 3 * 10**9))
        actions = actions_for(self.POD, ended, runs("b"), crash_loops=self.LOOPS)
        assert said(actions) == ["wait with a"]
        assert actions.requeue_after == 7
        failure = actions.waiting["a"]
        assert failure.reason == "CrashLoopBackOff"
        assert failure.message == "back-off 10s restarting failed container=a pod=p_ns(u)"

    def test_it_is_started_when_the_time_has_come(self) -> None:
        ended = structs.replace(exited("a", 1), finished_at=Time(NOW - 10 * 10**9))
        actions = actions_for(self.POD, ended, runs("b"), crash_loops=self.LOOPS)
        assert said(actions) == ["start a-1"]
        assert actions.start[0].last_exit == ended.finished_at
        assert actions.requeue_after is None

    def test_the_others_do_not_wait(self) -> None:
        ended = structs.replace(exited("a", 1), finished_at=NOW)
        actions = actions_for(self.POD, ended, exited("b"), crash_loops=self.LOOPS)
        assert said(actions) == ["start b-1", "wait with a"]

    def test_who_waits_keeps_the_pod_alive(self) -> None:
        ended = structs.replace(exited("a", 1), finished_at=NOW)
        pod = a_pod("a", policy="OnFailure")
        assert said(actions_for(pod, ended, crash_loops=self.LOOPS)) == ["wait with a"]

    def test_the_earliest_is_looked_at_again(self) -> None:
        loops = crash_loop(self.POD, "b", before=self.LOOPS)
        a = structs.replace(exited("a", 1), finished_at=NOW)
        b = structs.replace(exited("b", 1), finished_at=Time(NOW - 2 * 10**9))
        assert actions_for(self.POD, a, b, crash_loops=loops).requeue_after == 8


def test_who_does_not_count_restarts_is_counted() -> None:
    attempts = [
        ContainerFacts(name="a", id=str(n), state=ContainerRunState.EXITED) for n in (2, 1, 0)
    ]
    assert said(actions_for(a_pod("a"), *attempts)) == ["start a-3"]
