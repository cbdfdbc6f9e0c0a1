"""How large a pod may be that this node takes.

The API server bounds the bytes of a request, which is room for 60,000 containers. What is done for
a pod takes time for each of its containers, volumes and so on, most of it on the event loop that
also renews the lease: docs/decisions/0041-size-limits-of-pods.md.

Upstream has no such limit.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec

from podstatus.events import reasons
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec

MAX_CONTAINERS: Final = 1000
"""Init containers, sidecars, regular and ephemeral ones together."""
MAX_VOLUMES: Final = 1000
MAX_PER_CONTAINER: Final = 10_000
"""Variables, mounts, ports, arguments, resources and claims of one container."""
MAX_PER_POD: Final = 100_000
"""The same, of all containers of a pod together."""
MAX_LIST_ENTRIES: Final = 10_000
"""Entries of any other list of a pod."""


class LimitViolation(msgspec.Struct, frozen=True, kw_only=True):
    """Of what a pod has too much."""

    reason: str
    what: str
    count: int
    limit: int

    @property
    def message(self) -> str:
        """For the author of the pod."""
        return f"Pod has {self.count} {self.what}, this node takes at most {self.limit}"


def find_limit_violation(pod: Pod) -> LimitViolation | None:
    """The first limit that a pod is beyond; None if it is within all of them."""
    for reason, what, count, limit in _counts(pod):
        if count > limit:
            return LimitViolation(reason=reason, what=what, count=count, limit=limit)
    return None


def _counts(pod: Pod) -> Iterator[tuple[str, str, int, int]]:
    spec = pod.spec
    listed = (spec.init_containers, spec.containers, spec.ephemeral_containers)
    # Before anything is done for each of them.
    yield reasons.TOO_MANY_CONTAINERS, "containers", sum(map(_length, listed)), MAX_CONTAINERS
    yield reasons.TOO_MANY_VOLUMES, "volumes", _length(spec.volumes), MAX_VOLUMES
    sizes = [_size(container) for container in chain.from_iterable(c or () for c in listed)]
    what = "variables, mounts, ports, arguments and resources"
    in_one = f"{what} in one container"
    yield reasons.POD_TOO_LARGE, in_one, max(sizes, default=0), MAX_PER_CONTAINER
    yield reasons.POD_TOO_LARGE, what, sum(sizes), MAX_PER_POD
    for what, count in _list_lengths(pod, spec):
        yield reasons.POD_TOO_LARGE, what, count, MAX_LIST_ENTRIES


def _size(container: Container) -> int:
    return (
        _length(container.env)
        + _length(container.env_from)
        + _length(container.volume_mounts)
        + _length(container.ports)
        + _length(container.command)
        + _length(container.args)
        + len(container.resources.limits or ())
        + len(container.resources.requests or ())
        + _length(container.resources.claims)
    )


def _list_lengths(pod: Pod, spec: PodSpec) -> Iterator[tuple[str, int]]:
    yield "tolerations", _length(spec.tolerations)
    yield "hostAliases", _length(spec.host_aliases)
    yield "readinessGates", _length(spec.readiness_gates)
    yield "imagePullSecrets", _length(spec.image_pull_secrets)
    yield "resourceClaims", _length(spec.resource_claims)
    yield "schedulingGates", _length(spec.scheduling_gates)
    yield "labels", len(pod.metadata.labels or {})
    yield "annotations", len(pod.metadata.annotations or {})


def _length(listed: Sequence[object] | None) -> int:
    return 0 if listed is None else len(listed)
