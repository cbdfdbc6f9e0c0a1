"""Size limits of the pods that this node admits.

The API server only limits the bytes of a request, which allows 60,000 containers. The work per pod
grows with its containers, volumes and so on, and most of it runs on the event loop that also renews
the node lease: docs/decisions/0041-size-limits-of-pods.md.

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
"""Init containers, sidecars, regular and ephemeral containers together."""
MAX_VOLUMES: Final = 1000
MAX_PER_CONTAINER: Final = 10_000
"""Variables, mounts, ports, arguments, resources and claims of one container."""
MAX_PER_POD: Final = 100_000
"""The same, for all containers of a pod together."""
MAX_LIST_ENTRIES: Final = 10_000
"""Entries of any other list in a pod."""


class LimitViolation(msgspec.Struct, frozen=True, kw_only=True):
    """A size limit that a pod exceeds."""

    reason: str
    what: str
    count: int
    limit: int

    @property
    def message(self) -> str:
        """Text for the pod's status and event."""
        return f"Pod has {self.count} {self.what}, this node takes at most {self.limit}"


def find_limit_violation(pod: Pod) -> LimitViolation | None:
    """The first limit that the pod exceeds; None if it exceeds none."""
    for reason, what, count, limit in _counts(pod):
        if count > limit:
            return LimitViolation(reason=reason, what=what, count=count, limit=limit)
    return None


def _counts(pod: Pod) -> Iterator[tuple[str, str, int, int]]:
    spec = pod.spec
    lists = (spec.init_containers, spec.containers, spec.ephemeral_containers)
    # Count before any work per container.
    yield reasons.TOO_MANY_CONTAINERS, "containers", sum(map(_length, lists)), MAX_CONTAINERS
    yield reasons.TOO_MANY_VOLUMES, "volumes", _length(spec.volumes), MAX_VOLUMES
    sizes = [_size(container) for container in chain.from_iterable(c or () for c in lists)]
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


def _length(items: Sequence[object] | None) -> int:
    return 0 if items is None else len(items)
