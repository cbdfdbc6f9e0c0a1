"""A pod's spec combined with the runtime's state: the input of `compute` and its queries."""

from collections.abc import Mapping, Sequence

import msgspec

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Container, Probe
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    PodFacts,
    SandboxState,
)
from podstatus.kube.restart_policy import container_should_restart
from podstatus.kube.scalars.time import Time
from podstatus.workers.actions.model import (
    ContainerKind,
    ContainerProbeVerdicts,
    StartContainer,
    StopContainer,
)
from podstatus.workers.resize.plan import NO_RESIZE, ResizePlan


class PodActionInput(msgspec.Struct, frozen=True, kw_only=True):
    """Input of `compute_pod_actions`, shared by the plans of all containers."""

    pod: Pod
    facts: PodFacts
    verdicts: ContainerProbeVerdicts
    gates: FeatureGates
    by_name: Mapping[str, Sequence[ContainerFacts]]
    """Attempts of each container, newest first."""
    resize: ResizePlan = NO_RESIZE

    @property
    def regular(self) -> tuple[Container, ...]:
        """The regular containers, in spec order."""
        return self.pod.spec.containers or ()

    @property
    def init(self) -> tuple[Container, ...]:
        """Init containers and sidecars, in spec order."""
        return self.pod.spec.init_containers or ()

    def newest(self, container: Container) -> ContainerFacts | None:
        """The newest attempt of a container."""
        return next(iter(self.by_name.get(container.name, ())), None)

    def in_current_sandbox(self, container: Container) -> ContainerFacts | None:
        """The newest attempt of a container, if it belongs to the current sandbox."""
        attempt = self.newest(container)
        return attempt if attempt is not None and attempt.active else None

    def attempts(self, container: Container) -> Sequence[ContainerFacts]:
        """All attempts of a container, newest first."""
        return self.by_name.get(container.name, ())

    def last_exit(self, container: Container) -> Time | None:
        """Exit time of the newest exited attempt."""
        for attempt in self.attempts(container):
            if attempt.state is ContainerRunState.EXITED:
                return attempt.finished_at
        return None

    def has_anything_to_stop(self) -> bool:
        """Whether a sandbox is ready or a container has not exited."""
        return any(s.state is SandboxState.READY for s in self.facts.sandboxes) or any(
            c.state is not ContainerRunState.EXITED for c in self.facts.containers
        )

    def restarts_after(self, container: Container, exit_code: int) -> bool:
        """Whether an exited container, except a sidecar, is restarted.

        Upstream: ShouldContainerBeRestarted, pkg/kubelet/container/helpers.go v1.36.4.
        """
        spec = self.pod.spec
        if self.gates.container_restart_rules:
            return container_should_restart(container, spec, exit_code, self.gates)
        return spec.restart_policy != "Never" and not (
            spec.restart_policy == "OnFailure" and exit_code == 0
        )

    def restarts_when_stopped(self, container: Container) -> bool:
        """Whether a container, except a sidecar, is restarted after the node stops it.

        No exit code counts.
        """
        own = container.restart_policy if self.gates.container_restart_rules else None
        return (own or self.pod.spec.restart_policy) != "Never"

    def start_action(self, container: Container, kind: ContainerKind) -> StartContainer:
        """The next start of a container, with its restart count."""
        attempts = self.attempts(container)
        count = attempts[0].restart_count if attempts else None
        return StartContainer(
            container=container,
            kind=kind,
            restart_count=len(attempts) if count is None else count + 1,
            last_exit=self.last_exit(container),
        )

    def is_changed(self, container: Container, attempt: ContainerFacts) -> bool:
        """Whether the container's image differs from the spec.

        Only the image of a container can change; upstream compares nothing else.
        """
        return attempt.image not in ("", container.image)

    def required_stop(self, container: Container, attempt: ContainerFacts) -> StopContainer | None:
        """The stop of a running container that must not continue; None if it may."""
        verdicts = self.verdicts
        if self.is_changed(container, attempt):
            return self._stop_action(attempt, "definition changed", None)
        if verdicts.liveness.get(attempt.id) is False:
            return self._stop_action(attempt, "failed liveness probe", container.liveness_probe)
        if verdicts.startup.get(attempt.id) is False:
            return self._stop_action(attempt, "failed startup probe", container.startup_probe)
        if attempt.id in verdicts.restart_requested:
            return self._stop_action(attempt, "restart requested", None)
        return None

    def resize_restart(self, attempt: ContainerFacts) -> StopContainer | None:
        """The stop of a container whose resize requires a restart, whatever its restart policy.

        None if it needs none. As upstream, the message says "Container" for init containers, too.
        """
        if attempt.name not in self.resize.restart:
            return None
        message = f"Container {attempt.name} resize requires restart"
        return StopContainer(container=attempt, message=message)

    def _stop_action(
        self, attempt: ContainerFacts, reason: str, probe: Probe | None
    ) -> StopContainer:
        # A probe's grace period only overrides one that the pod sets.
        has_grace = self.pod.spec.termination_grace_period_seconds is not None
        return StopContainer(
            container=attempt,
            message=f"{attempt.name} {reason}",
            grace_seconds=probe.termination_grace_period_seconds if probe and has_grace else None,
        )


def stop_unknown(attempt: ContainerFacts, label: str) -> StopContainer:
    """Stop a container in unknown state: it may run, and must not run twice."""
    message = f'{label} is in "unknown" state, try killing it before restart'
    return StopContainer(container=attempt, message=message)
