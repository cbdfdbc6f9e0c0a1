import pytest

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import (
    Container,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
)
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.restart_policy import (
    all_containers_could_restart,
    container_should_restart,
    find_matching_container_restart_rule,
    is_restartable_init_container,
)

RESTART, RESTART_ALL_CONTAINERS = "Restart", "RestartAllContainers"
RESTART_ALL_OFF = FeatureGates(restart_all_containers_on_container_exits=False)


def rule(action: str, operator: str = "In", *exit_codes: int) -> ContainerRestartRule:
    codes = ContainerRestartRuleOnExitCodes(operator=operator, values=exit_codes)
    return ContainerRestartRule(action=action, exit_codes=codes)


def container(policy: str | None = None, *rules: ContainerRestartRule) -> Container:
    return Container(name="app", restart_policy=policy, restart_policy_rules=rules)


def should_restart(
    of: Container, pod_policy: str, exit_code: int, gates: FeatureGates | None = None
) -> bool:
    spec = PodSpec(restart_policy=pod_policy)
    return container_should_restart(of, spec, exit_code, gates or FeatureGates())


@pytest.mark.parametrize(
    ("pod_policy", "exit_code", "expected"),
    [
        ("Always", 0, True),
        ("Always", 1, True),
        ("OnFailure", 0, False),
        ("OnFailure", 1, True),
        ("Never", 0, False),
        ("Never", 1, False),
        ("", 0, True),
        ("Sometimes", 0, True),
    ],
)
def test_a_container_without_a_policy_follows_the_pod(
    *, pod_policy: str, exit_code: int, expected: bool
) -> None:
    assert should_restart(container(), pod_policy, exit_code) is expected


@pytest.mark.parametrize(
    ("policy", "pod_policy", "exit_code", "expected"),
    [
        ("Always", "Never", 0, True),
        ("OnFailure", "Always", 0, False),
        ("OnFailure", "Never", 1, True),
        ("Never", "Always", 1, False),
        ("Sometimes", "Never", 1, False),
        ("Sometimes", "Always", 1, True),
    ],
)
def test_a_known_container_policy_overrides_that_of_the_pod(
    *, policy: str, pod_policy: str, exit_code: int, expected: bool
) -> None:
    assert should_restart(container(policy), pod_policy, exit_code) is expected


@pytest.mark.parametrize(
    ("of", "gates", "expected"),
    [
        pytest.param(container("Never", rule(RESTART, "In", 3)), None, True, id="matches"),
        pytest.param(container("Never", rule(RESTART, "In", 4)), None, False, id="another code"),
        pytest.param(container("Never", rule("Odd", "In", 3)), None, False, id="unknown action"),
        pytest.param(
            container("Never", rule(RESTART_ALL_CONTAINERS, "In", 3)), None, True, id="all"
        ),
        pytest.param(
            container("Never", rule(RESTART_ALL_CONTAINERS, "In", 3)),
            RESTART_ALL_OFF,
            False,
            id="all, but the gate is off",
        ),
        pytest.param(
            container("Never", rule("Odd", "In", 3), rule(RESTART, "In", 3)),
            None,
            False,
            id="only the first rule that matches counts",
        ),
    ],
)
def test_a_matching_rule_goes_before_the_container_policy(
    *, of: Container, gates: FeatureGates | None, expected: bool
) -> None:
    assert should_restart(of, "Never", 3, gates) is expected


def test_surprise_22_rules_of_a_container_without_a_policy_do_not_count() -> None:
    assert not should_restart(container(None, rule(RESTART, "In", 3)), "Never", 3)


@pytest.mark.parametrize(
    ("operator", "values", "exit_code", "expected"),
    [
        ("In", (1, 2), 2, True),
        ("In", (1, 2), 3, False),
        ("In", (), 0, False),
        ("NotIn", (1, 2), 2, False),
        ("NotIn", (1, 2), 3, True),
        ("NotIn", (), 0, True),
        ("Near", (1, 2), 2, False),
    ],
)
def test_exit_codes_match_by_operator(
    *, operator: str, values: tuple[int, ...], exit_code: int, expected: bool
) -> None:
    only = rule(RESTART, operator, *values)
    match = find_matching_container_restart_rule(container("Never", only), exit_code)
    assert (match is only) is expected


def test_the_first_matching_rule_is_found_and_rules_without_exit_codes_are_skipped() -> None:
    skipped, other = ContainerRestartRule(action=RESTART), rule(RESTART, "In", 9)
    first, second = rule(RESTART, "In", 3), rule(RESTART_ALL_CONTAINERS, "NotIn", 4)
    of = container("Never", skipped, other, first, second)
    assert find_matching_container_restart_rule(of, 3) is first
    assert find_matching_container_restart_rule(of, 5) is second
    assert find_matching_container_restart_rule(of, 4) is None


def test_a_sidecar_is_an_init_container_that_always_restarts() -> None:
    assert is_restartable_init_container(container("Always"))
    assert not is_restartable_init_container(container("OnFailure"))
    assert not is_restartable_init_container(container())


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (PodSpec(), False),
        (PodSpec(containers=(container("Never", rule(RESTART)),)), False),
        (PodSpec(containers=(container("Never", rule(RESTART_ALL_CONTAINERS)),)), True),
        (PodSpec(init_containers=(container(None, rule(RESTART_ALL_CONTAINERS)),)), True),
    ],
)
def test_one_rule_anywhere_can_restart_the_whole_pod(*, spec: PodSpec, expected: bool) -> None:
    assert all_containers_could_restart(spec) is expected
