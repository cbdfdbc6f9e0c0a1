"""Which sysctls a pod may name: those that affect no other pod.

A runtime may reject more. `allowedUnsafeSysctls` is not supported, and the versions of Linux that
lack one of the safe sysctls (before 4.15) are not distinguished.

Upstream: Admit and validateSysctl, pkg/kubelet/sysctl/allowlist.go; safe_sysctls.go v1.36.4.
"""

from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.sysctls import normalize_sysctl

_SAFE_IPC = frozenset({"kernel.shm_rmid_forced"})
_SAFE_NETWORK = frozenset(
    f"net.ipv4.{name}"
    for name in (
        "ip_local_port_range",
        "tcp_syncookies",
        "ping_group_range",
        "ip_unprivileged_port_start",
        "ip_local_reserved_ports",
        "tcp_keepalive_time",
        "tcp_fin_timeout",
        "tcp_keepalive_intvl",
        "tcp_keepalive_probes",
        "tcp_rmem",
        "tcp_wmem",
    )
)


def find_forbidden_sysctl(spec: PodSpec) -> str | None:
    """Return why the first forbidden sysctl is forbidden; None if there is none."""
    context = spec.security_context
    for sysctl in () if context is None else context.sysctls or ():
        name = normalize_sysctl(sysctl.name)
        if name not in _SAFE_IPC | _SAFE_NETWORK:
            return f"{go_quoted(name)} not allowlisted"
        if name in _SAFE_IPC and spec.host_ipc:
            return f"{go_quoted(name)} not allowed with host ipc enabled"
        if name in _SAFE_NETWORK and spec.host_network:
            return f"{go_quoted(name)} not allowed with host net enabled"
    return None
