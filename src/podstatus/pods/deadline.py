"""How long a pod may be active on its node.

Upstream: pkg/kubelet/active_deadline.go v1.36.4.
"""

from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.scalars.time import Time

DEADLINE_EXCEEDED = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"

_SECOND = 1_000_000_000


def past_active_deadline(spec: PodSpec, start_time: Time | None, now: Time) -> bool:
    """Whether a pod that started then has used up its time; one that has not started has not."""
    if spec.active_deadline_seconds is None or not start_time:
        return False
    return now - start_time >= spec.active_deadline_seconds * _SECOND
