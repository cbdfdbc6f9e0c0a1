"""Restart policies and restart rules of containers.

Upstream: pkg/api/v1/pod/util.go v1.36.4.
"""

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Container, ContainerRestartRule
from podstatus.kube.objects.pod_spec import PodSpec

RESTART = "Restart"
RESTART_ALL_CONTAINERS = "RestartAllContainers"


def is_restartable_init_container(container: Container) -> bool:
    """Return whether an init container is a sidecar, which runs beside regular containers."""
    return container.restart_policy == "Always"


def find_matching_container_restart_rule(
    container: Container, exit_code: int
) -> ContainerRestartRule | None:
    """Return the first restart rule that matches this exit code, None if there is none."""
    for rule in container.restart_policy_rules or ():
        if rule.exit_codes is None:
            continue
        listed = exit_code in (rule.exit_codes.values or ())
        if rule.exit_codes.operator == ("In" if listed else "NotIn"):
            return rule
    return None


def container_should_restart(
    container: Container, spec: PodSpec, exit_code: int, gates: FeatureGates
) -> bool:
    """Return whether a container that exited with this code has to be restarted."""
    if container.restart_policy is not None:
        rule = find_matching_container_restart_rule(container, exit_code)
        if rule is not None and _rule_restarts(rule, gates):
            return True
        if container.restart_policy in ("Always", "OnFailure", "Never"):
            return _policy_restarts(container.restart_policy, exit_code)
    return _policy_restarts(spec.restart_policy, exit_code)


def _rule_restarts(rule: ContainerRestartRule, gates: FeatureGates) -> bool:
    if rule.action == RESTART_ALL_CONTAINERS:
        return gates.restart_all_containers_on_container_exits
    return rule.action == RESTART


def _policy_restarts(policy: str, exit_code: int) -> bool:
    if policy == "OnFailure":
        return exit_code != 0
    # A missing or unknown policy is treated as Always.
    return policy != "Never"


def all_containers_could_restart(spec: PodSpec) -> bool:
    """Return whether a restart rule may restart all containers of the pod in place."""
    containers = (*(spec.init_containers or ()), *(spec.containers or ()))
    return any(
        rule.action == RESTART_ALL_CONTAINERS
        for container in containers
        for rule in container.restart_policy_rules or ()
    )
