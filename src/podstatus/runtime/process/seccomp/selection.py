"""Which seccomp filter a container gets: the default one, unless its spec says otherwise.

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
_REMEDY: Final = "leave it out, or set RuntimeDefault"
_ISOLATED_REASON: Final = (
    "without the filter a container can reach the keyrings and cgroups of the agent's user; "
    f"{_REMEDY}"
)


def seccomp_program(
    pod: Pod, container: Container, run_as: ProcessCredentials, support: HostSupport
) -> bytes:
    """The filter as a BPF program; empty for none. Raises CannotStartError."""
    wanted = _profile_type(pod, container)
    if wanted == _UNCONFINED:
        if support.isolated:
            raise unsupported_field(_FIELD, wanted, _ISOLATED_REASON)
        return b""
    if wanted not in ("", _RUNTIME_DEFAULT):
        why = f"there are no profiles of this machine; {_REMEDY}"
        raise unsupported_field(_FIELD, wanted, why)
    if not support.seccomp_unavailable:
        return _program(support.machine, frozenset(run_as.capabilities))
    if wanted:
        raise unsupported_field(_FIELD, wanted, f"{support.seccomp_unavailable}; leave it out")
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
