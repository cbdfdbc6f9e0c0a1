"""The stop order of a pod's containers, and the grace period of each.

The grace period of the whole pod is in `lifecycle.state_machine`.

Upstream: killContainer and setTerminationGracePeriod, kuberuntime_container.go;
kuberuntime_termination_order.go v1.36.4.
"""

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.kube.restart_policy import is_restartable_init_container

StopBatch = tuple[ContainerFacts, ...]

MIN_CONTAINER_GRACE = 2
"""Minimum grace period in seconds, so that every container can exit on its own."""


def termination_order(pod: Pod | None, facts: PodFacts) -> tuple[StopBatch, ...]:
    """The containers that have not exited, in batches; each batch waits for the previous one.

    Sidecars come last, one by one in reverse spec order, since they serve the other containers and
    the sidecars after them. Containers that are not in the spec belong to the first batch, so an
    orphan (`pod` is None) is one batch. Differs from upstream: sidecars also wait for init and
    ephemeral containers, not only for regular ones.
    """
    running = [a for a in facts.containers if a.state is not ContainerRunState.EXITED]
    init = () if pod is None else pod.spec.init_containers or ()
    last: dict[str, list[ContainerFacts]] = {
        c.name: [] for c in reversed(init) if is_restartable_init_container(c)
    }
    first: list[ContainerFacts] = []
    for attempt in running:
        last.get(attempt.name, first).append(attempt)
    return tuple(tuple(wave) for wave in (first, *last.values()) if wave)


def container_grace(pod: Pod, probe_grace: int | None = None) -> int:
    """Grace period in seconds of a container that is stopped while its pod continues.

    The first that is set: the pod's deletion grace period, `probe_grace` (see
    `StopContainer.grace_seconds`), the pod's termination grace period. With 0 no hook runs, but
    `remaining_grace` still applies the minimum.
    """
    deletion = pod.metadata.deletion_grace_period_seconds
    spec = pod.spec.termination_grace_period_seconds
    return next((s for s in (deletion, probe_grace, spec) if s is not None), MIN_CONTAINER_GRACE)


def remaining_grace(grace: float, waited: float) -> float:
    """Grace period left, in seconds, after `waited` seconds for hooks and earlier batches."""
    # Upstream counts whole seconds.
    return max(MIN_CONTAINER_GRACE, grace - int(waited))
