"""The whole status of a pod: phase, reason, conditions, addresses, and properties of all."""

import re
from typing import Any, cast

import pytest
from hypothesis import given, settings
from msgspec import structs

from podstatus.kube.conditions import find_condition, pod_condition_by_kubelet
from podstatus.kube.encoding.codec import to_document
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import (
    Container,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
    Probe,
    ResourceRequirements,
)
from podstatus.kube.objects.pod import Pod, is_terminal_phase
from podstatus.kube.objects.pod_spec import PodReadinessGate
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStateWaiting,
    ContainerStatus,
    HostIP,
    PodCondition,
    PodIP,
    PodStatus,
)
from podstatus.kube.objects.runtime_facts import (
    ContainerRunState,
    NetworkMode,
    PodFacts,
    SandboxFacts,
    SandboxState,
)
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.pods.apply_probe_results import ProbeResults
from podstatus.pods.container_status import StartFailure
from podstatus.pods.generate_api_status import generate_api_pod_status, past_active_deadline
from podstatus.testing.builders import ended, make_pod, make_static_pod, make_status, running
from tests.support.container_facts import NOW, RESTART_ALL_OFF, exited, only, runs, status_of
from tests.support.data.strategies import facts as some_facts
from tests.support.data.strategies import pods as some_pods
from tests.support.data.strategies import statuses as some_statuses

SANDBOX = SandboxFacts(id="sb", state=SandboxState.READY, ip="10.1.2.3")


def conditions(status: PodStatus) -> dict[str, str]:
    return {c.type: c.status for c in status.conditions or ()}


def with_spec(pod: Pod, **changes: object) -> Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, **changes))


def with_status(pod: Pod, **changes: object) -> Pod:
    return structs.replace(pod, status=structs.replace(pod.status, **changes))


def test_a_container_that_cannot_start_waits_with_the_reason() -> None:
    failures = {"app": StartFailure(reason="ErrImagePull")}
    status = generate_api_pod_status(make_pod(), PodFacts(), now=NOW, start_failures=failures)
    waits = ContainerStateWaiting(reason="ErrImagePull", message="")
    assert only(status.container_statuses).state == ContainerState(waiting=waits)


def test_a_pod_comes_up() -> None:
    pod = make_pod(generation=3)
    facts = PodFacts(containers=(runs("app"),), sandboxes=(SANDBOX,), ips=("10.1.2.3",))
    status = generate_api_pod_status(pod, facts, now=NOW, host_ips=("192.168.7.1",))
    assert status.phase == "Running"
    assert conditions(status) == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    assert {c.observed_generation for c in status.conditions or ()} == {3}
    assert (status.host_ip, status.pod_ip) == ("192.168.7.1", "10.1.2.3")
    assert status.qos_class == "BestEffort"


def test_before_anything_is_known_the_pod_is_pending_and_scheduled() -> None:
    status = status_of(make_pod(init_containers=("init",)))
    assert status.phase == "Pending"
    assert [t for t, value in conditions(status).items() if value == "True"] == ["PodScheduled"]
    assert (status.host_ip, status.pod_ip, status.pod_ips) == ("", "", None)


def test_the_kubelets_conditions_come_in_its_order_after_all_others() -> None:
    theirs = (
        PodCondition(type="Ready", status="True"),
        PodCondition(type="example.com/b", status="True"),
        PodCondition(type="PodScheduled", status="False"),
        PodCondition(type="example.com/a", status="False"),
    )
    resize = PodCondition(type="PodResizePending", status="True", observed_generation=2)
    status = generate_api_pod_status(
        with_status(make_pod(generation=3), conditions=theirs),
        PodFacts(containers=(runs("app"),)),
        now=NOW,
        resize_conditions=(resize,),
    )
    assert list(conditions(status)) == [
        "example.com/b",
        "example.com/a",
        "PodResizePending",
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    assert (status.conditions or ())[2] == resize


def test_with_its_gate_off_a_condition_is_foreign() -> None:
    gates = FeatureGates(pod_ready_to_start_containers_condition=False)
    condition = PodCondition(type="PodReadyToStartContainers", status="Unknown")
    pod = with_status(make_pod(), conditions=(condition,))
    assert conditions(status_of(pod, gates=gates))["PodReadyToStartContainers"] == "Unknown"
    assert "PodReadyToStartContainers" not in conditions(status_of(make_pod(), gates=gates))


def test_a_terminal_pod_is_not_resized_any_more() -> None:
    pending = PodCondition(type="PodResizePending", status="True")
    status = generate_api_pod_status(
        make_pod(), PodFacts(), now=NOW, resize_conditions=(pending,), pod_is_terminal=True
    )
    assert "PodResizePending" not in conditions(status)


def test_a_resize_of_a_pod_without_generations_has_none() -> None:
    pending = PodCondition(type="PodResizePending", status="True", observed_generation=4)
    status = generate_api_pod_status(
        make_pod(generation=0), PodFacts(), now=NOW, resize_conditions=(pending,)
    )
    condition = find_condition(status.conditions, "PodResizePending")
    assert condition is not None
    assert condition.observed_generation == 0


def test_a_disruption_that_only_the_manager_knows_of_is_kept() -> None:
    ours = PodCondition(type="DisruptionTarget", status="True", reason="TerminationByKubelet")
    theirs = PodCondition(type="DisruptionTarget", status="False")
    other = PodCondition(type="example.com/a", status="True")
    pod = with_status(make_pod(), conditions=(theirs, other))
    cached = structs.replace(make_status("Running"), conditions=(ours,))
    status = generate_api_pod_status(pod, PodFacts(), now=NOW, old_status=cached)
    assert (status.conditions or ())[:2] == (ours, other)


def test_readiness_gates_are_looked_up_among_the_conditions_kept() -> None:
    pod = with_spec(
        make_pod(), readiness_gates=(PodReadinessGate(condition_type="example.com/lb"),)
    )
    assert conditions(status_of(pod, runs("app")))["Ready"] == "False"
    lb = PodCondition(type="example.com/lb", status="True")
    pod = with_status(pod, conditions=(lb,))
    assert conditions(status_of(pod, runs("app")))["Ready"] == "True"


def test_probes_decide_whether_the_pod_is_ready_and_not_its_phase() -> None:
    pod = with_spec(make_pod(), containers=(Container(name="app", readiness_probe=Probe()),))
    facts = PodFacts(containers=(runs("app"),))
    verdicts = ProbeResults(ready={"fake://app-0": False})
    status = generate_api_pod_status(pod, facts, now=NOW, prober=verdicts)
    assert (status.phase, conditions(status)["Ready"]) == ("Running", "False")
    verdicts = ProbeResults(ready={"fake://app-0": True})
    status = generate_api_pod_status(pod, facts, now=NOW, prober=verdicts)
    assert (status.phase, conditions(status)["Ready"]) == ("Running", "True")


@pytest.mark.parametrize(
    ("sandboxes", "host_network", "expected"),
    [
        ((), False, "False"),
        ((SANDBOX,), False, "True"),
        ((structs.replace(SANDBOX, state=SandboxState.NOT_READY), SANDBOX), False, "False"),
        ((SANDBOX, structs.replace(SANDBOX, state=SandboxState.NOT_READY)), False, "True"),
        ((structs.replace(SANDBOX, network=NetworkMode.NODE),), True, "True"),
    ],
)
def test_the_newest_sandbox_decides_whether_containers_can_start(
    sandboxes: tuple[SandboxFacts, ...], *, host_network: bool, expected: str
) -> None:
    pod = with_spec(make_pod(), host_network=host_network)
    status = generate_api_pod_status(pod, PodFacts(sandboxes=sandboxes), now=NOW)
    assert conditions(status)["PodReadyToStartContainers"] == expected


def test_a_rule_that_restarts_the_pod_shows_a_condition() -> None:
    codes = ContainerRestartRuleOnExitCodes(operator="In", values=(42,))
    rule = ContainerRestartRule(action="RestartAllContainers", exit_codes=codes)
    app = Container(name="app", restart_policy="Never", restart_policy_rules=(rule,))
    pod = with_spec(make_pod(), containers=(app,))
    restarting = "AllContainersRestarting"
    assert conditions(status_of(pod, runs("app")))[restarting] == "False"
    assert conditions(status_of(pod, exited("app", 42)))[restarting] == "True"
    assert restarting not in conditions(status_of(pod, exited("app", 42), gates=RESTART_ALL_OFF))
    assert restarting not in conditions(status_of(make_pod(), exited("app", 42)))


# Phase, reason and message


def started_sidecar() -> ContainerStatus:
    return structs.replace(running("proxy"), started=False)


@pytest.mark.parametrize(("active", "phase"), [(True, "Running"), (False, "Pending")])
def test_a_sidecar_that_starts_again_takes_the_pod_back_only_if_the_sandbox_is_new(
    *, active: bool, phase: str
) -> None:
    pod = make_pod(sidecars=("proxy",))
    pod = with_status(pod, init_container_statuses=(started_sidecar(),))
    app = structs.replace(runs("app"), active=active)
    assert status_of(pod, runs("proxy"), app).phase == phase


@pytest.mark.parametrize("ended_as", ["Failed", "Succeeded"])
def test_a_phase_that_has_ended_stays_with_its_reason(ended_as: str) -> None:
    pod = with_status(make_pod(), phase=ended_as, reason="Evicted", message="too much memory")
    status = status_of(pod, runs("app"))
    assert (status.phase, status.reason, status.message) == (ended_as, "Evicted", "too much memory")


def test_a_phase_that_has_ended_in_the_cache_stays_too() -> None:
    pod, facts = with_status(make_pod(), phase="Running"), PodFacts(containers=(runs("app"),))
    cached = structs.replace(make_status("Failed"), reason="Preempting")
    status = generate_api_pod_status(pod, facts, now=NOW, old_status=cached)
    assert (status.phase, status.reason) == ("Failed", "Preempting")


def test_the_phase_that_the_api_server_shows_as_ended_wins() -> None:
    pod = with_status(make_pod(restart_policy="Never"), phase="Succeeded")
    status = status_of(pod, exited("app", 1))
    assert (status.phase, status.reason) == ("Succeeded", "")


def test_a_reason_goes_with_its_phase() -> None:
    pod = with_status(make_pod(), phase="Pending", reason="Unschedulable", message="no capacity")
    assert (status_of(pod).reason, status_of(pod).message) == ("Unschedulable", "no capacity")
    status = status_of(pod, runs("app"))
    assert (status.phase, status.reason, status.message) == ("Running", "", "")


def test_a_reason_missing_in_the_cache_comes_from_the_api_server() -> None:
    pod = with_status(make_pod(), phase="Running", reason="theirs", message="theirs too")
    cached = structs.replace(make_status("Running"), reason="ours")
    facts = PodFacts(containers=(runs("app"),))
    status = generate_api_pod_status(pod, facts, now=NOW, old_status=cached)
    assert (status.reason, status.message) == ("ours", "theirs too")


@pytest.mark.parametrize(
    ("static", "terminal", "phase"),
    [(False, False, "Running"), (False, True, "Failed"), (True, True, "Running")],
)
def test_a_pod_that_starts_nothing_any_more_has_ended(
    *, static: bool, terminal: bool, phase: str
) -> None:
    pod = make_static_pod() if static else make_pod()
    assert status_of(pod, exited("app", 1), terminal=terminal).phase == phase


@pytest.mark.parametrize(
    ("seconds", "start", "past"),
    [
        (None, "2024-06-01T11:00:00Z", False),
        (3600, "2024-06-01T11:00:00Z", True),
        (3601, "2024-06-01T11:00:00Z", False),
        (0, "2024-06-01T12:00:00Z", True),
        (1, None, False),
    ],
)
def test_a_deadline_counts_from_the_start_of_the_pod(
    seconds: int | None, start: str | None, *, past: bool
) -> None:
    spec = structs.replace(make_pod().spec, active_deadline_seconds=seconds)
    assert past_active_deadline(spec, Time.parse(start), NOW) is past


def test_a_pod_past_its_deadline_has_failed_while_its_containers_run() -> None:
    pod = with_spec(make_pod(), active_deadline_seconds=60)
    pod = with_status(pod, phase="Running", start_time=Time.parse("2024-06-01T11:00:00Z"))
    status = status_of(pod, runs("app"))
    assert (status.phase, status.reason) == ("Failed", "DeadlineExceeded")
    assert status.message == "Pod was active on the node longer than the specified deadline"
    assert conditions(status)["Ready"] == "False"


def test_the_deadline_counts_from_the_start_that_is_cached() -> None:
    pod = with_spec(make_pod(), active_deadline_seconds=60)
    pod = with_status(pod, start_time=Time.parse("2024-06-01T11:00:00Z"))
    cached = structs.replace(pod.status, start_time=NOW)
    status = generate_api_pod_status(pod, PodFacts(), now=NOW, old_status=cached)
    assert status.phase == "Pending"


# The pod as a whole


def test_a_dual_stack_pod_in_its_nodes_network_has_its_nodes_addresses() -> None:
    pod = with_spec(make_pod(), host_network=True)
    status = generate_api_pod_status(pod, PodFacts(), now=NOW, host_ips=("fd00::7", "192.168.7.1"))
    assert status.host_ips == (HostIP(ip="fd00::7"), HostIP(ip="192.168.7.1"))
    assert status.pod_ips == (PodIP(ip="fd00::7"), PodIP(ip="192.168.7.1"))
    assert (status.host_ip, status.pod_ip) == ("fd00::7", "fd00::7")


def test_a_class_once_given_is_kept() -> None:
    assert status_of(with_status(make_pod(), qos_class="Guaranteed")).qos_class == "Guaranteed"


def test_what_is_allocated_is_shown_for_the_pod_and_its_containers() -> None:
    requests = {"cpu": Quantity("100m"), "memory": Quantity("64Mi")}
    resources = ResourceRequirements(requests=requests)
    containers = tuple(Container(name=name, resources=resources) for name in ("a", "b"))
    status = status_of(with_spec(make_pod(), containers=containers), runs("a"))
    assert status.allocated_resources == {"cpu": "200m", "memory": "128Mi"}
    assert status.resources == ResourceRequirements(requests=status.allocated_resources, limits={})
    a, b = status.container_statuses or ()
    assert (a.allocated_resources, a.resources) == (requests, resources)
    assert (b.allocated_resources, b.resources) == (None, None)


def test_the_manager_decides_start_time_and_generation() -> None:
    old = structs.replace(make_status("Running"), start_time=NOW, observed_generation=4)
    status = status_of(make_pod(status=old), runs("app"))
    assert (status.start_time, status.observed_generation) == (None, 0)


# Properties


@settings(max_examples=150)
@given(some_pods(), some_facts(), some_statuses())
def test_status_properties_hold_for_any_pod_facts_and_old_status(
    pod: Pod, facts: PodFacts, old: PodStatus
) -> None:
    status = generate_api_pod_status(pod, facts, now=NOW, old_status=old)
    every_container_of_the_spec_has_a_status_and_no_other(pod, status)
    what_has_ended_for_good_does_not_come_back(pod, old, status)
    restarts_do_not_become_fewer(old, status)
    conditions_of_others_are_kept_as_they_are_and_where_they_are(pod, status)


def every_container_of_the_spec_has_a_status_and_no_other(pod: Pod, status: PodStatus) -> None:
    regular = sorted(c.name for c in pod.spec.containers or ())
    assert [s.name for s in status.container_statuses or ()] == regular
    init = [c.name for c in pod.spec.init_containers or ()]
    assert [s.name for s in status.init_container_statuses or ()] == init
    assert to_document(status)


def what_has_ended_for_good_does_not_come_back(pod: Pod, old: PodStatus, status: PodStatus) -> None:
    if is_terminal_phase(pod.status.phase):
        assert status.phase == pod.status.phase
    elif is_terminal_phase(old.phase):
        assert is_terminal_phase(status.phase)


def restarts_do_not_become_fewer(old: PodStatus, status: PodStatus) -> None:
    before = {s.name: s.restart_count for s in old.container_statuses or ()}
    for container in status.container_statuses or ():
        assert container.restart_count >= before.get(container.name, 0)


def conditions_of_others_are_kept_as_they_are_and_where_they_are(
    pod: Pod, status: PodStatus
) -> None:
    gates = FeatureGates()
    foreign = [
        [c for c in listed or () if not pod_condition_by_kubelet(c.type, gates)]
        for listed in (pod.status.conditions, status.conditions)
    ]
    assert foreign[0] == foreign[1]


KNOWN = (ContainerRunState.CREATED, ContainerRunState.RUNNING, ContainerRunState.EXITED)


@given(some_pods(), some_facts(states=KNOWN), some_statuses(types=["Ready", "Initialized"]))
def test_the_same_facts_again_change_nothing(pod: Pod, facts: PodFacts, old: PodStatus) -> None:
    first = generate_api_pod_status(pod, facts, now=NOW, old_status=old)
    second = generate_api_pod_status(pod, facts, now=NOW, old_status=first)
    assert second.container_statuses == first.container_statuses
    assert second.phase == first.phase
    # The API server's reason is adopted once the phase equals its phase.
    assert generate_api_pod_status(pod, facts, now=NOW, old_status=second) == second


def test_what_a_runtime_reports_of_an_ended_pod_is_shown_to_the_end() -> None:
    pod = make_pod(restart_policy="Never")
    status = status_of(pod, exited("app", 3))
    assert (status.phase, conditions(status)["ContainersReady"]) == ("Failed", "False")
    ready = find_condition(status.conditions, "Ready")
    assert ready is not None
    assert ready.reason == "PodFailed"
    assert status_of(with_status(pod, container_statuses=(ended("app", 3),))).phase == "Failed"


class TestARuntimeThatDoesNotCount:
    """Restarts are counted by the IDs of attempts, from the previous status on."""

    def lives(self, *, gates: FeatureGates, end_is_reported: bool) -> list[int]:
        """Return the restart counts of a container that fails, waits and restarts, twice."""
        pod, counts = make_pod(), []
        for number in range(3):
            attempt = structs.replace(runs("app", number), restart_count=None)
            failed = structs.replace(exited("app", 1, number), restart_count=None)
            reports = [(attempt, {}), (failed, {}), (failed, {"app": "CrashLoopBackOff"})]
            for facts, failing in reports if end_is_reported else (reports[0], reports[2]):
                pod = structs.replace(
                    pod, status=status_of(pod, facts, failing=failing, gates=gates)
                )
                counts.append((pod.status.container_statuses or ())[0].restart_count)
        return counts

    @pytest.mark.parametrize("gates", [FeatureGates(), RESTART_ALL_OFF], ids=["gate on", "off"])
    def test_every_new_container_is_one_restart(self, gates: FeatureGates) -> None:
        assert self.lives(gates=gates, end_is_reported=True) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        assert self.lives(gates=gates, end_is_reported=False) == [0, 0, 1, 1, 2, 2]

    def test_attempts_that_are_listed_count_though_nothing_was_shown(self) -> None:
        attempts = [structs.replace(exited("app", 1, n), restart_count=None) for n in (0, 1)]
        newest = structs.replace(runs("app", 2), restart_count=None)
        status = status_of(make_pod(), newest, *attempts)
        assert (status.container_statuses or ())[0].restart_count == 2

    def test_a_container_that_was_never_made_is_no_attempt(self) -> None:
        pod = make_pod()
        pod = structs.replace(pod, status=status_of(pod))
        attempt = structs.replace(runs("app"), restart_count=None)
        assert (status_of(pod, attempt).container_statuses or ())[0].restart_count == 0


POD = make_pod()
GOOD: dict[str, Any] = {"pod": POD, "facts": PodFacts(), "now": NOW}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pod": None}, "expected a Pod, got None"),
        ({"pod": b"{}"}, "expected a Pod, got bytes; decode it first"),
        ({"facts": [runs("app")]}, "expected a PodFacts, got list"),
        (
            {"now": 1700000000},
            "now: expected a Time, got int; use Time.from_unix_nanos(time.time_ns())",
        ),
        (
            {"host_ips": "10.0.0.1"},
            "host_ips: expected a list of addresses, got the string '10.0.0.1'",
        ),
        (
            {"host_ips": "1" * 99},
            f"host_ips: expected a list of addresses, got the string '{'1' * 40}'",
        ),
        ({"host_ips": ["10.0.0.1", 7]}, "host_ips[1]: expected str, got int"),
        ({"old_status": {}}, "expected a PodStatus, got dict; decode it first"),
        ({"start_failures": {"app": "CrashLoopBackOff"}}, "expected a StartFailure, got str"),
        ({"facts": PodFacts(ips=cast(Any, "10.0.0.1"))}, "ips: expected tuple, got str"),
        (
            {"facts": PodFacts(containers=(cast(Any, "app"),))},
            "containers[0]: expected ContainerFacts, got str",
        ),
        (
            {"facts": PodFacts(containers=(structs.replace(runs("app"), state="running"),))},
            "containers[0].state: expected ContainerRunState, got str",
        ),
        (
            {"facts": PodFacts(containers=(structs.replace(runs("app"), started_at=5),))},
            "containers[0].started_at: expected Time, got int",
        ),
    ],
)
def test_what_is_of_a_wrong_type_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(message)}"):
        generate_api_pod_status(**(GOOD | wrong))


def test_facts_may_come_in_lists() -> None:
    facts = PodFacts(containers=cast(Any, [runs("app")]), ips=cast(Any, ["10.0.0.1"]))
    status = generate_api_pod_status(POD, facts, now=NOW, host_ips=["192.168.7.1"])
    assert (status.phase, status.pod_ip, status.host_ip) == ("Running", "10.0.0.1", "192.168.7.1")
