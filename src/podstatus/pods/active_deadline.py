"""Whether a pod is past its activeDeadlineSeconds.

Upstream: pkg/kubelet/active_deadline.go v1.36.4.
"""

from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.scalars.time import Time

_SECOND = 1_000_000_000


DEADLINE_EXCEEDED = "DeadlineExceeded"


DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


def past_active_deadline(spec: PodSpec, start_time: Time | None, now: Time) -> bool:
    """Return whether the active deadline has passed; False if the pod has not started."""
    if spec.active_deadline_seconds is None or not start_time:
        return False
    return now - start_time >= spec.active_deadline_seconds * _SECOND
