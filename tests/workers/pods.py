"""Builders for pods and runtime facts, and a one-line format of actions."""

from collections.abc import Sequence

from msgspec import structs

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import (
    Container,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
    EphemeralContainer,
)
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    PodFacts,
    SandboxFacts,
    SandboxState,
)
from podstatus.kube.scalars.time import Time
from podstatus.testing.builders import make_pod
from podstatus.workers.actions.compute import compute_pod_actions
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.actions.model import ContainerProbeVerdicts, PodActions

NOW = Time.parse("2024-06-01T12:00:00Z")
MONOTONIC = 100_000 * 10**9
"""The monotonic clock at `NOW`."""
READY = SandboxFacts(id="box-0", state=SandboxState.READY, ip="10.0.0.1")
DEAD = SandboxFacts(id="box-0", state=SandboxState.NOT_READY)


def a_pod(
    *containers: str | Container,
    init: Sequence[str | Container] = (),
    ephemeral: Sequence[str] = (),
    policy: str = "Always",
    grace: int | None = 30,
) -> Pod:
    """A pod with these containers, given by name or whole."""
    pod = make_pod("p", namespace="ns", uid="u", restart_policy=policy)
    spec = structs.replace(
        pod.spec,
        containers=tuple(map(_container, containers)),
        init_containers=tuple(map(_container, init)) or None,
        ephemeral_containers=tuple(EphemeralContainer(name=n, image=f"{n}:1") for n in ephemeral)
        or None,
        termination_grace_period_seconds=grace,
    )
    return structs.replace(pod, spec=spec)


def _container(given: str | Container) -> Container:
    return Container(name=given, image=f"{given}:1") if isinstance(given, str) else given


def sidecar(name: str, **fields: object) -> Container:
    """A restartable init container."""
    return with_policy(name, "Always", **fields)


def with_policy(name: str, policy: str, **fields: object) -> Container:
    """A container with a restart policy of its own."""
    container = Container(name=name, image=f"{name}:1", restart_policy=policy)
    return structs.replace(container, **fields)


def with_rule(name: str, action: str, *exit_codes: int, policy: str = "Never") -> Container:
    """A container with a rule for these exit codes."""
    codes = ContainerRestartRuleOnExitCodes(operator="In", values=exit_codes)
    rule = ContainerRestartRule(action=action, exit_codes=codes)
    return with_policy(name, policy, restart_policy_rules=(rule,))


def facts_of(*attempts: ContainerFacts, sandboxes: Sequence[SandboxFacts] = (READY,)) -> PodFacts:
    """Runtime facts of a pod; by default the sandbox is ready."""
    return PodFacts(containers=attempts, sandboxes=tuple(sandboxes))


def actions_for(
    pod: Pod,
    *attempts: ContainerFacts,
    sandboxes: Sequence[SandboxFacts] = (READY,),
    verdicts: ContainerProbeVerdicts | None = None,
    crash_loops: CrashLoopBackoff | None = None,
    gates: FeatureGates | None = None,
) -> PodActions:
    """The computed actions of a pod."""
    exits = {a.name: a.finished_at for a in attempts if a.state is ContainerRunState.EXITED}
    loops = (crash_loops or CrashLoopBackoff()).exited(pod.uid, exits, NOW, MONOTONIC)
    return compute_pod_actions(
        pod,
        facts_of(*attempts, sandboxes=sandboxes),
        monotonic=MONOTONIC,
        crash_loop_backoff=loops,
        verdicts=verdicts or ContainerProbeVerdicts(),
        gates=gates or FeatureGates(),
    )


def said(actions: PodActions) -> list[str]:
    """The actions as text, in order."""
    grace = [
        "" if stop.grace_seconds is None else f" within {stop.grace_seconds} s"
        for stop in actions.stop
    ]
    return [
        *(["stop the pod"] if actions.stop_pod else []),
        *(f"{s.message}{g}" for s, g in zip(actions.stop, grace, strict=True)),
        *(f"remove {attempt.id.removeprefix('fake://')}" for attempt in actions.remove),
        *(["make a sandbox"] if actions.start_pod else []),
        *(f"start {s.container.name}-{s.restart_count}" for s in actions.start),
        *(f"wait with {name}" for name in actions.waiting),
    ]
