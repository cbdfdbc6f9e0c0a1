"""The user, groups and capabilities of a container, and what cannot be granted.

Every field is honoured or rejected, none is ignored: a container with a security setting that
cannot be applied is never started. docs/decisions/0022 has the table.

Upstream: DetermineEffectiveSecurityContext, pkg/securitycontext/util.go; verifyRunAsNonRoot,
pkg/kubelet/kuberuntime/security_context_others.go; FsUserFrom, pkg/volume/util/util.go; v1.36.4.
"""

from typing import TypeVar

import msgspec

from podstatus.kube.objects.containers import Container, SecurityContext
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSecurityContext
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.runtime.process.spec.capabilities import effective_capabilities
from podstatus.runtime.process.spec.config_errors import config_error, unsupported_field

T = TypeVar("T")
ROOT = 0
_UNIX_IDS = 2**32 - 1
"""The largest ID means "unchanged" to the kernel."""


class HostSupport(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent can do: its user, and its means of isolation."""

    user: int
    group: int
    groups: tuple[int, ...] = ()
    isolated: bool
    """Whether bubblewrap is used."""
    can_switch_user: bool = True
    """Whether there is a program to switch the user inside bubblewrap."""
    machine: str = "x86_64"
    """The architecture for seccomp filters."""
    seccomp_unavailable: str = ""
    """Why seccomp is unavailable; empty if it is available."""
    allows_unconfined: bool = False
    """Whether isolated containers that ask for it run without a seccomp filter."""

    @property
    def is_root(self) -> bool:
        """Whether the agent may switch to any user."""
        return self.user == ROOT


class ProcessCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """User, groups and capabilities of a container's process."""

    user: int
    group: int
    groups: tuple[int, ...] | None = None
    """Supplementary groups; None: those of the agent."""
    capabilities: tuple[str, ...] = ()
    """Effective capabilities."""


class Ownership(msgspec.Struct, frozen=True, kw_only=True):
    """Owner of a pod's volumes; None: the agent."""

    group: int | None = None
    user: int | None = None
    """Owner of tokens: the user of all containers, if there is only one."""


def credentials(pod: Pod, container: Container, support: HostSupport) -> ProcessCredentials:
    """Return the credentials of this container. Raises CannotStartError."""
    of_pod = pod.spec.security_context or PodSecurityContext()
    own = container.security_context or SecurityContext()
    user = _first_set(own.run_as_user, of_pod.run_as_user)
    group = _first_set(own.run_as_group, of_pod.run_as_group)
    groups = _groups(of_pod)
    _check_ids(user, group, groups, support)
    _check_non_root(pod, container, user, support)
    uid = support.user if user is None else user
    # An image would define the user's group. There is none: use the group of the same number.
    gid = group if group is not None else support.group if user is None else user
    changed = (uid, gid) != (support.user, support.group) or bool(groups)
    if changed and support.is_root and support.isolated and not support.can_switch_user:
        reason = "this requires the program setpriv; install it (Debian: apt install util-linux)"
        raise unsupported_field("securityContext.runAsUser", uid, reason)
    return ProcessCredentials(
        user=uid,
        group=gid,
        groups=tuple(sorted(groups)) if support.is_root and changed else None,
        capabilities=effective_capabilities(
            own.capabilities, user=uid, root=support.is_root, isolated=support.isolated
        ),
    )


def ownership(pod: Pod, support: HostSupport) -> Ownership:
    """Return the owner of this pod's volumes, as far as the agent may set it."""
    of_pod = pod.spec.security_context or PodSecurityContext()
    if not support.is_root:
        return Ownership(group=of_pod.fs_group if of_pod.fs_group in _own_groups(support) else None)
    spec = pod.spec
    containers = (*(spec.init_containers or ()), *(spec.containers or ()))
    users = {
        _first_set((c.security_context or SecurityContext()).run_as_user, of_pod.run_as_user)
        for c in containers
    }
    return Ownership(group=of_pod.fs_group, user=users.pop() if len(users) == 1 else None)


def _groups(of_pod: PodSecurityContext) -> set[int]:
    fs_group = () if of_pod.fs_group is None else (of_pod.fs_group,)
    return {*(of_pod.supplemental_groups or ()), *fs_group}


def _own_groups(support: HostSupport) -> set[int]:
    return {support.group, *support.groups}


def _check_ids(user: int | None, group: int | None, groups: set[int], support: HostSupport) -> None:
    ids = {"runAsUser": user, "runAsGroup": group}
    for field, number in (*ids.items(), *(("supplementalGroups", g) for g in sorted(groups))):
        if number is not None and not 0 <= number < _UNIX_IDS:
            raise unsupported_field(f"securityContext.{field}", number, "the ID is out of range")
    if support.is_root:
        return
    reason = (
        f"the agent is an ordinary user ({support.user}) and cannot switch users; run it as root"
    )
    if user not in (None, support.user):
        raise unsupported_field("securityContext.runAsUser", user, reason)
    if group not in (None, support.group):
        raise unsupported_field("securityContext.runAsGroup", group, reason)
    if others := groups - _own_groups(support):
        reason = f"the agent is an ordinary user and not in group {min(others)}; run it as root"
        raise unsupported_field(
            "securityContext.supplementalGroups or fsGroup", tuple(sorted(groups)), reason
        )


def _check_non_root(pod: Pod, container: Container, user: int | None, support: HostSupport) -> None:
    of_pod = pod.spec.security_context or PodSecurityContext()
    own = container.security_context or SecurityContext()
    if not _first_set(own.run_as_non_root, of_pod.run_as_non_root):
        return
    pod_name = go_quoted(f"{pod.name}_{pod.namespace}({pod.uid})")
    where = f"(pod: {pod_name}, container: {container.name})"
    if user == ROOT:
        raise config_error(f"container's runAsUser breaks non-root policy {where}")
    if user is None and support.is_root:
        raise config_error(f"container has runAsNonRoot and image will run as root {where}")


def _first_set(own: T | None, of_pod: T | None) -> T | None:
    return of_pod if own is None else own
