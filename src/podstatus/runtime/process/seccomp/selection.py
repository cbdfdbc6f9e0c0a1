"""Selects the seccomp filter of a container: the default one, unless its spec says otherwise.

Upstream: SeccompProfile of pkg/apis/core; the kubelet's seccompDefault, which is on here.
"""

from functools import lru_cache
from typing import Final

from podstatus.kube.objects.containers import Container, SecurityContext
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSecurityContext
from podstatus.runtime.process.seccomp.bpf_filter import assemble
from podstatus.runtime.process.seccomp.default_profile import default_profile
from podstatus.runtime.process.seccomp.syscall_numbers import ARCHITECTURES
from podstatus.runtime.process.spec.config_errors import unsupported_field
from podstatus.runtime.process.spec.security import HostSupport, ProcessCredentials

_FIELD: Final = "securityContext.seccompProfile.type"
_RUNTIME_DEFAULT, _UNCONFINED = "RuntimeDefault", "Unconfined"
_REMEDY: Final = "remove it, or set RuntimeDefault"
_ISOLATED_REASON: Final = (
    "without the filter a container can reach the keyrings and cgroups of the agent's user; "
    f"{_REMEDY}, or run the agent with --allow-unconfined-seccomp"
)


def seccomp_program(
    pod: Pod, container: Container, run_as: ProcessCredentials, support: HostSupport
) -> bytes:
    """Return the filter as a BPF program; empty for none. Raises CannotStartError."""
    profile = _profile_type(pod, container)
    if profile == _UNCONFINED:
        if support.isolated and not support.allows_unconfined:
            raise unsupported_field(_FIELD, profile, _ISOLATED_REASON)
        return b""
    if profile not in ("", _RUNTIME_DEFAULT):
        reason = f"this runtime loads no profiles from files; {_REMEDY}"
        raise unsupported_field(_FIELD, profile, reason)
    if not support.seccomp_unavailable:
        return _program(support.machine, frozenset(run_as.capabilities))
    if profile:
        raise unsupported_field(_FIELD, profile, f"{support.seccomp_unavailable}; remove it")
    return b""


def _profile_type(pod: Pod, container: Container) -> str:
    of_pod = pod.spec.security_context or PodSecurityContext()
    own = container.security_context or SecurityContext()
    profile = own.seccomp_profile or of_pod.seccomp_profile
    return "" if profile is None else profile.type


@lru_cache(maxsize=64)
def _program(machine: str, capabilities: frozenset[str]) -> bytes:
    architecture = ARCHITECTURES[machine]
    return assemble(architecture.audit, default_profile(architecture, capabilities))
