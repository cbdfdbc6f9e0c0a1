import pytest

from podstatus.kube.features import FeatureGates


def test_all_gates_are_on_by_default() -> None:
    gates = FeatureGates()
    assert gates.pod_ready_to_start_containers_condition
    assert gates.restart_all_containers_on_container_exits
    assert gates.container_restart_rules


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "PodReadyToStartContainersCondition",
            FeatureGates(pod_ready_to_start_containers_condition=False),
        ),
        (
            "RestartAllContainersOnContainerExits",
            FeatureGates(restart_all_containers_on_container_exits=False),
        ),
        ("ContainerRestartRules", FeatureGates(container_restart_rules=False)),
    ],
)
def test_upstream_names_switch_gates_off(name: str, expected: FeatureGates) -> None:
    assert FeatureGates.from_names({name: False}) == expected
    assert FeatureGates.from_names({name: True}) == FeatureGates()


def test_an_unknown_gate_is_refused_with_the_names_of_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"gates NoSuchGate; .*supports .*ContainerRestartRules"):
        FeatureGates.from_names({"NoSuchGate": True, "SidecarContainers": True})


def test_other_gates_of_kubernetes_are_accepted_and_change_nothing() -> None:
    names = {"WatchListClient": False, "SidecarContainers": True, "AllAlpha": True}
    gates = FeatureGates.from_names(names)
    assert gates.without_effect == ("AllAlpha", "SidecarContainers", "WatchListClient")
    assert gates.by_name() == FeatureGates().by_name()


def test_a_locked_gate_cannot_be_changed() -> None:
    message = "cannot set feature gate SidecarContainers to false, feature is locked to true"
    with pytest.raises(ValueError, match=message):
        FeatureGates.from_names({"SidecarContainers": False})


def test_all_beta_gates_are_switched_unless_they_are_named() -> None:
    gates = FeatureGates.from_names({"AllBeta": False, "ContainerRestartRules": True})
    assert gates == FeatureGates(
        pod_ready_to_start_containers_condition=False,
        restart_all_containers_on_container_exits=False,
    )
