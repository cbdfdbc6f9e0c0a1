"""The sysctls of a pod that the process runtime can set: those of an IPC namespace.

Each container has an IPC namespace of its own, in which all sysctls of its pod are set. Pods have
the network of the host, so those of a network namespace would be set for the host.
"""

from collections.abc import Mapping
from typing import Final

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSecurityContext
from podstatus.kube.sysctls import normalize_sysctl
from podstatus.runtime.process.spec.config_errors import unsupported_field
from podstatus.runtime.process.spec.security import HostSupport

_FIELD: Final = "securityContext.sysctls"
_SETTABLE = frozenset({"kernel.shm_rmid_forced"})


def ipc_sysctls(pod: Pod, support: HostSupport) -> Mapping[str, str]:
    """Return the values to set, by name. Raises CannotStartError."""
    context = pod.spec.security_context or PodSecurityContext()
    values = {normalize_sysctl(sysctl.name): sysctl.value for sysctl in context.sysctls or ()}
    reason = _unsupported_reason(pod, values, support)
    if values and reason:
        raise unsupported_field(_FIELD, tuple(values), reason)
    return values


def _unsupported_reason(pod: Pod, values: Mapping[str, str], support: HostSupport) -> str:
    if not support.isolated or pod.spec.host_ipc or not _SETTABLE.issuperset(values):
        return "they would apply to the whole machine; remove them"
    if not support.is_root:
        return "the agent is an ordinary user and cannot set them; run it as root"
    return ""
