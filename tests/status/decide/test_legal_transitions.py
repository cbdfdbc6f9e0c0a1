import pytest
from msgspec import structs

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import (
    Container,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
)
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.status.decide.legal_transitions import (
    check_container_state_transition,
    get_container_by_index,
)
from podstatus.testing.builders import ended, make_status, running, waiting

RULES_OFF = FeatureGates(container_restart_rules=False)
RESTART_ALL_OFF = FeatureGates(restart_all_containers_on_container_exits=False)
ILLEGAL = "terminated container app attempted illegal transition to non-terminated state"
ILLEGAL_INIT = "terminated init container init attempted illegal transition to non-terminated state"
MISMATCH = "found mismatch between pod spec and status, container: init"


def rule(action: str, *exit_codes: int) -> ContainerRestartRule:
    codes = ContainerRestartRuleOnExitCodes(operator="In", values=exit_codes)
    return ContainerRestartRule(action=action, exit_codes=codes)


def spec_of(
    policy: str,
    container: Container | None = None,
    init: tuple[Container, ...] = (),
) -> PodSpec:
    containers = (container or Container(name="app"),)
    return PodSpec(restart_policy=policy, containers=containers, init_containers=init)


def init_status(*statuses: ContainerStatus) -> PodStatus:
    return structs.replace(make_status("Pending"), init_container_statuses=statuses)


def check(
    old: PodStatus, new: PodStatus, spec: PodSpec, gates: FeatureGates | None = None
) -> str | None:
    return check_container_state_transition(old, new, spec, gates or FeatureGates())


@pytest.mark.parametrize(
    ("policy", "exit_code", "expected"),
    [
        ("Always", 0, None),
        ("Always", 1, None),
        ("OnFailure", 0, ILLEGAL),
        ("OnFailure", 1, None),
        ("Never", 0, ILLEGAL),
        ("Never", 1, ILLEGAL),
    ],
)
@pytest.mark.parametrize("gates", [FeatureGates(), RULES_OFF, RESTART_ALL_OFF])
@pytest.mark.parametrize("revived", [running("app"), waiting("app"), ContainerStatus(name="app")])
def test_restart_policy_decides_whether_an_ended_container_may_come_back(
    policy: str,
    exit_code: int,
    expected: str | None,
    gates: FeatureGates,
    revived: ContainerStatus,
) -> None:
    old, new = make_status("Running", ended("app", exit_code)), make_status("Running", revived)
    assert check(old, new, spec_of(policy), gates) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(running("app"), ended("app"), id="it ends"),
        pytest.param(waiting("app"), running("app"), id="it starts"),
        pytest.param(running("app"), waiting("app"), id="it waits again"),
        pytest.param(ended("app"), ended("app", 1), id="it ended otherwise"),
        pytest.param(ended("app"), running("other"), id="it is not mentioned any more"),
    ],
)
def test_what_revives_nothing_is_legal(old: ContainerStatus, new: ContainerStatus) -> None:
    assert check(make_status("", old), make_status("", new), spec_of("Never")) is None


@pytest.mark.parametrize(
    ("container", "exit_code", "gates", "expected"),
    [
        pytest.param(
            Container(name="app", restart_policy="Always"), 0, None, None, id="container policy"
        ),
        pytest.param(
            Container(name="app", restart_policy="Always"), 0, RULES_OFF, ILLEGAL, id="gate off"
        ),
        pytest.param(
            Container(
                name="app", restart_policy="Never", restart_policy_rules=(rule("Restart", 42),)
            ),
            42,
            None,
            None,
            id="rule matches",
        ),
        pytest.param(
            Container(
                name="app", restart_policy="Never", restart_policy_rules=(rule("Restart", 42),)
            ),
            1,
            None,
            ILLEGAL,
            id="rule does not match",
        ),
        pytest.param(
            Container(name="app", restart_policy_rules=(rule("Restart", 42),)),
            42,
            None,
            ILLEGAL,
            id="surprise 22: a rule without a policy",
        ),
    ],
)
def test_policies_and_rules_of_the_container_count(
    container: Container, exit_code: int, gates: FeatureGates | None, expected: str | None
) -> None:
    old, new = make_status("", ended("app", exit_code)), make_status("", running("app"))
    assert check(old, new, spec_of("Never", container), gates) == expected


def test_surprise_22_one_rule_that_restarts_all_legalises_every_transition() -> None:
    sidecar = Container(name="sidecar", restart_policy_rules=(rule("RestartAllContainers", 9),))
    spec = spec_of("Never", init=(sidecar,))
    old, new = make_status("", ended("app", 1)), make_status("", running("app"))
    assert check(old, new, spec) is None
    assert check(old, new, spec, RESTART_ALL_OFF) == ILLEGAL
    assert check(init_status(ended("odd")), init_status(running("odd")), spec) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("app", None, id="in the spec: it may restart"),
        pytest.param("ghost", ILLEGAL.replace("app", "ghost"), id="not in the spec: it may not"),
    ],
)
def test_surprise_21_a_missing_restart_policy_counts_as_always_for_known_containers_only(
    name: str, expected: str | None
) -> None:
    old, new = make_status("", ended(name)), make_status("", running(name))
    assert check(old, new, spec_of("")) == expected


def test_surprise_21_a_missing_restart_policy_still_checks_init_containers_by_index() -> None:
    assert check(init_status(ended("init")), PodStatus(), spec_of("")) == MISMATCH


@pytest.mark.parametrize(
    ("policy", "exit_code", "container", "expected"),
    [
        ("Always", 0, Container(name="init"), None),
        ("OnFailure", 1, Container(name="init"), None),
        ("OnFailure", 0, Container(name="init"), ILLEGAL_INIT),
        ("Never", 1, Container(name="init"), ILLEGAL_INIT),
        ("Never", 1, Container(name="init", restart_policy="Always"), None),
        ("Never", 1, Container(name="init", restart_policy="OnFailure"), None),
        ("Never", 0, Container(name="init", restart_policy="OnFailure"), ILLEGAL_INIT),
    ],
)
def test_init_containers_follow_the_same_policies(
    policy: str, exit_code: int, container: Container, expected: str | None
) -> None:
    old, new = init_status(ended("init", exit_code)), init_status(running("init"))
    assert check(old, new, spec_of(policy, init=(container,))) == expected


def test_a_sidecar_may_always_come_back_even_without_restart_rules() -> None:
    sidecar = Container(name="init", restart_policy="Always")
    old, new = init_status(ended("init")), init_status(running("init"))
    assert check(old, new, spec_of("Never", init=(sidecar,)), RULES_OFF) is None


@pytest.mark.parametrize(
    ("policy", "expected"), [("Never", MISMATCH), ("OnFailure", MISMATCH), ("Always", None)]
)
@pytest.mark.parametrize(
    "init",
    [
        pytest.param((), id="not in the spec"),
        pytest.param((Container(name="other"), Container(name="init")), id="elsewhere in the spec"),
    ],
)
def test_surprise_17_init_statuses_that_do_not_match_the_spec_by_index_are_refused(
    policy: str, expected: str | None, init: tuple[Container, ...]
) -> None:
    assert check(init_status(waiting("init")), PodStatus(), spec_of(policy, init=init)) == expected


def test_a_container_is_found_by_index_if_its_name_is_that_of_the_status() -> None:
    a, b = Container(name="a"), Container(name="b")
    statuses = (waiting("a"), waiting("x"))
    assert get_container_by_index((a, b), statuses, 0) is a
    assert get_container_by_index((a, b), statuses, 1) is None
    assert get_container_by_index((a, b), statuses, 2) is None
    assert get_container_by_index((a, b), statuses, -1) is None
    assert get_container_by_index((), statuses, 0) is None
