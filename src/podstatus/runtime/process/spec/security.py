"""As whom a container runs, and what of its security context cannot be had here.

Every field is honoured or refused, none is ignored: whoever asks for a protection that is not
there is told so before anything runs. docs/decisions/0022 has the table.

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
"""The last one means `leave it as it is` to the kernel."""


class HostSupport(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent can do: who it is, and how it keeps containers apart."""

    user: int
    group: int
    groups: tuple[int, ...] = ()
    isolated: bool
    """By bubblewrap."""
    can_switch_user: bool = True
    """Whether there is a program that changes the user inside of bubblewrap."""
    machine: str = "x86_64"
    """The architecture that seccomp filters are made for."""
    seccomp_unavailable: str = ""
    """Why there are no filters; empty: there are."""

    @property
    def is_root(self) -> bool:
        """Whether it may become anybody."""
        return self.user == ROOT


class ProcessCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """As whom a container runs."""

    user: int
    group: int
    groups: tuple[int, ...] | None = None
    """Besides its own; None: as the agent's."""
    capabilities: tuple[str, ...] = ()
    """What is left of root's powers."""


class Ownership(msgspec.Struct, frozen=True, kw_only=True):
    """To whom the volumes of a pod belong; None: to the agent."""

    group: int | None = None
    user: int | None = None
    """Of tokens: the one user that all containers run as."""


def credentials(pod: Pod, container: Container, support: HostSupport) -> ProcessCredentials:
    """As whom this container is to run. Raises CannotStartError."""
    of_pod = pod.spec.security_context or PodSecurityContext()
    own = container.security_context or SecurityContext()
    user = _first_set(own.run_as_user, of_pod.run_as_user)
    group = _first_set(own.run_as_group, of_pod.run_as_group)
    groups = _groups(of_pod)
    _check_ids(user, group, groups, support)
    _check_non_root(pod, container, user, support)
    uid = support.user if user is None else user
    # An image would say which group a user is in. There is none: the one of the same number.
    gid = group if group is not None else support.group if user is None else user
    changed = (uid, gid) != (support.user, support.group) or bool(groups)
    if changed and support.is_root and support.isolated and not support.can_switch_user:
        why = "that takes the program setpriv; install it (Debian: apt install util-linux)"
        raise unsupported_field("securityContext.runAsUser", uid, why)
    return ProcessCredentials(
        user=uid,
        group=gid,
        groups=tuple(sorted(groups)) if support.is_root and changed else None,
        capabilities=effective_capabilities(
            own.capabilities, user=uid, root=support.is_root, isolated=support.isolated
        ),
    )


def ownership(pod: Pod, support: HostSupport) -> Ownership:
    """To whom the volumes of this pod belong, as far as that can be."""
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
    asked = {"runAsUser": user, "runAsGroup": group}
    for field, number in (*asked.items(), *(("supplementalGroups", g) for g in sorted(groups))):
        if number is not None and not 0 <= number < _UNIX_IDS:
            raise unsupported_field(f"securityContext.{field}", number, "there is no such id")
    if support.is_root:
        return
    why = f"the agent is an ordinary user ({support.user}) and can be nobody else; run it as root"
    if user not in (None, support.user):
        raise unsupported_field("securityContext.runAsUser", user, why)
    if group not in (None, support.group):
        raise unsupported_field("securityContext.runAsGroup", group, why)
    if others := groups - _own_groups(support):
        why = f"the agent is an ordinary user and not in group {min(others)}; run it as root"
        raise unsupported_field(
            "securityContext.supplementalGroups or fsGroup", tuple(sorted(groups)), why
        )


def _check_non_root(pod: Pod, container: Container, user: int | None, support: HostSupport) -> None:
    of_pod = pod.spec.security_context or PodSecurityContext()
    own = container.security_context or SecurityContext()
    if not _first_set(own.run_as_non_root, of_pod.run_as_non_root):
        return
    shown = go_quoted(f"{pod.name}_{pod.namespace}({pod.uid})")
    where = f"(pod: {shown}, container: {container.name})"
    if user == ROOT:
        raise config_error(f"container's runAsUser breaks non-root policy {where}")
    if user is None and support.is_root:
        raise config_error(f"container has runAsNonRoot and image will run as root {where}")


def _first_set(own: T | None, of_pod: T | None) -> T | None:
    return of_pod if own is None else own
