"""In which order the containers of a pod are stopped, and how long they get.

How long the pod as a whole gets is in `life`.

Upstream: killContainer and setTerminationGracePeriod, kuberuntime_container.go;
kuberuntime_termination_order.go v1.36.4.
"""

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.kube.restart_policy import is_restartable_init_container

StopBatch = tuple[ContainerFacts, ...]

MIN_CONTAINER_GRACE = 2
"""Seconds that every container gets, so that it can end by itself, whatever was asked for."""


def termination_order(pod: Pod | None, facts: PodFacts) -> tuple[StopBatch, ...]:
    """The containers that have not ended, in waves: each is stopped when the one before has ended.

    Sidecars serve the others, and those that were started before them: so they come last, one
    by one, the last of the spec first. What the spec does not know is stopped with the rest;
    of a pod that only the runtime knows that is everything.
    Upstream holds sidecars back for regular containers alone, not for init and ephemeral ones.
    """
    left = [a for a in facts.containers if a.state is not ContainerRunState.EXITED]
    init = () if pod is None else pod.spec.init_containers or ()
    last: dict[str, list[ContainerFacts]] = {
        c.name: [] for c in reversed(init) if is_restartable_init_container(c)
    }
    first: list[ContainerFacts] = []
    for attempt in left:
        last.get(attempt.name, first).append(attempt)
    return tuple(tuple(wave) for wave in (first, *last.values()) if wave)


def container_grace(pod: Pod, probe_grace: int | None = None) -> int:
    """How many seconds a container gets that is stopped while its pod goes on.

    `probe_grace` is what its probe says (`StopContainer.grace_seconds`). The deletion of the pod is
    stronger than that. 0 leaves no time for a hook; `remaining_grace` is what it gets all the same.
    """
    deletion = pod.metadata.deletion_grace_period_seconds
    spec = pod.spec.termination_grace_period_seconds
    return next((s for s in (deletion, probe_grace, spec) if s is not None), MIN_CONTAINER_GRACE)


def remaining_grace(grace: float, waited: float) -> float:
    """What a container gets of its grace after its hook has run and its turn has come."""
    # Waiting is counted in whole seconds.
    return max(MIN_CONTAINER_GRACE, grace - int(waited))
