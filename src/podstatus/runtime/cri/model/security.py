"""Security contexts: the container's field wins over the pod's.

Upstream: determineEffectiveSecurityContext, kuberuntime/security_context.go; verifyRunAsNonRoot,
security_context_others.go; NamespacesForPod, kuberuntime/util/util.go; default paths,
pkg/securitycontext/util.go; v1.36.4. The directories of thermal throttling, which upstream masks in
addition where there are any, are not masked here.
"""

from collections.abc import Sequence
from typing import TypeVar

from podstatus.kube.objects.containers import (
    Capabilities,
    Container,
    EphemeralContainer,
    SeccompProfile,
    SecurityContext,
    SELinuxOptions,
)
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSecurityContext
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.runtime.cri.api import security as cri
from podstatus.runtime.cri.api.images import CriImage
from podstatus.runtime.process.spec.config_errors import config_error

T = TypeVar("T")
_ROOT = 0
_MAX_USER_ID = 2**31 - 1
_UNMASKED = "Unmasked"
_MASKED_PATHS = (
    *("/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys"),
    *("/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug"),
    *("/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap"),
)
_READ_ONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


def namespace_options(pod: Pod) -> cri.CriNamespaceOption:
    """Return the namespaces that a pod shares between its containers, or with the host."""
    spec = pod.spec
    pid = cri.NAMESPACE_CONTAINER
    if spec.host_pid:
        pid = cri.NAMESPACE_NODE
    elif spec.share_process_namespace:
        pid = cri.NAMESPACE_POD
    return cri.CriNamespaceOption(
        network=cri.NAMESPACE_NODE if spec.host_network else cri.NAMESPACE_POD,
        ipc=cri.NAMESPACE_NODE if spec.host_ipc else cri.NAMESPACE_POD,
        pid=pid,
    )


def sandbox_security(pod: Pod) -> cri.CriLinuxSandboxSecurityContext:
    """Return the security context of a sandbox. It has the runtime's seccomp profile, always.

    Differs from upstream, which sends namespaces only for a pod with a security context: the API
    server adds an empty one to every pod, and an embedded or static source may not.
    """
    of_pod = pod.spec.security_context or PodSecurityContext()
    containers = (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))
    return cri.CriLinuxSandboxSecurityContext(
        namespace_options=namespace_options(pod),
        selinux_options=_selinux(of_pod.se_linux_options),
        run_as_user=_int64(of_pod.run_as_user),
        run_as_group=_int64(of_pod.run_as_group),
        supplemental_groups=_groups(of_pod),
        privileged=any((c.security_context or SecurityContext()).privileged for c in containers),
        seccomp=cri.CriSecurityProfile(profile_type=cri.PROFILE_RUNTIME_DEFAULT),
    )


def container_security(
    pod: Pod, container: Container, image: CriImage, *, target_id: str = ""
) -> cri.CriLinuxContainerSecurityContext:
    """Return the security context of a container. Raises CannotStartError.

    `target_id` is the container whose processes an ephemeral container sees.
    """
    of_pod = pod.spec.security_context or PodSecurityContext()
    own = container.security_context or SecurityContext()
    check_non_root(pod, container, image)
    user = _int64(_first_set(own.run_as_user, of_pod.run_as_user))
    unmasked = own.proc_mount == _UNMASKED
    return cri.CriLinuxContainerSecurityContext(
        capabilities=_capabilities(own.capabilities),
        privileged=bool(own.privileged),
        namespace_options=_with_target(namespace_options(pod), container, target_id),
        selinux_options=_selinux(own.se_linux_options or of_pod.se_linux_options),
        run_as_user=user or _image_user(image),
        run_as_group=_int64(_first_set(own.run_as_group, of_pod.run_as_group)),
        run_as_username="" if user is not None else image.username,
        readonly_rootfs=bool(own.read_only_root_filesystem),
        supplemental_groups=_groups(of_pod),
        no_new_privs=own.allow_privilege_escalation is False,
        masked_paths=() if unmasked else _MASKED_PATHS,
        readonly_paths=() if unmasked else _READ_ONLY_PATHS,
        seccomp=_seccomp(own.seccomp_profile or of_pod.seccomp_profile),
    )


def check_non_root(pod: Pod, container: Container, image: CriImage) -> None:
    """Raise CannotStartError if the container must not be root and is, or may be."""
    of_pod = pod.spec.security_context or PodSecurityContext()
    own = container.security_context or SecurityContext()
    if not _first_set(own.run_as_non_root, of_pod.run_as_non_root):
        return
    user = _first_set(own.run_as_user, of_pod.run_as_user)
    pod_name = go_quoted(f"{pod.name}_{pod.namespace}({pod.uid})")
    where = f"(pod: {pod_name}, container: {container.name})"
    if user is not None:
        if user == _ROOT:
            raise config_error(f"container's runAsUser breaks non-root policy {where}")
        return
    if image.uid is None and image.username:
        raise config_error(
            f"container has runAsNonRoot and image has non-numeric user ({image.username}), "
            f"cannot verify user is non-root {where}"
        )
    if image.uid is None or image.uid.value == _ROOT:
        raise config_error(f"container has runAsNonRoot and image will run as root {where}")
    if not 0 <= image.uid.value <= _MAX_USER_ID:
        raise config_error(
            f"container has runAsNonRoot and image has an invalid user id ({image.uid.value}). "
            f"(Must be 1-({_MAX_USER_ID})): must be between 0 and {_MAX_USER_ID}, inclusive {where}"
        )


def _image_user(image: CriImage) -> cri.CriInt64Value | None:
    """Return the number of the image's user: root, unless the image names another."""
    if image.uid is None and not image.username:
        return cri.CriInt64Value(value=_ROOT)
    return image.uid


def _with_target(
    options: cri.CriNamespaceOption, container: Container, target_id: str
) -> cri.CriNamespaceOption:
    shares = isinstance(container, EphemeralContainer) and target_id
    if not shares or options.pid != cri.NAMESPACE_CONTAINER:
        return options
    return cri.CriNamespaceOption(
        network=options.network,
        ipc=options.ipc,
        pid=cri.NAMESPACE_TARGET,
        target_id=target_id,
    )


def _seccomp(profile: SeccompProfile | None) -> cri.CriSecurityProfile:
    """Return the profile. Without one there is no filter, as upstream without seccompDefault."""
    is_default = profile is not None and profile.type == "RuntimeDefault"
    kind = cri.PROFILE_RUNTIME_DEFAULT if is_default else cri.PROFILE_UNCONFINED
    return cri.CriSecurityProfile(profile_type=kind)


def _groups(of_pod: PodSecurityContext) -> tuple[int, ...]:
    fs_group: Sequence[int] = () if of_pod.fs_group is None else (of_pod.fs_group,)
    return (*fs_group, *(of_pod.supplemental_groups or ()))


def _capabilities(capabilities: Capabilities | None) -> cri.CriCapability | None:
    if capabilities is None:
        return None
    return cri.CriCapability(
        add_capabilities=capabilities.add or (), drop_capabilities=capabilities.drop or ()
    )


def _selinux(options: SELinuxOptions | None) -> cri.CriSELinuxOption | None:
    if options is None:
        return None
    return cri.CriSELinuxOption(
        user=options.user, role=options.role, type=options.type, level=options.level
    )


def _int64(value: int | None) -> cri.CriInt64Value | None:
    return None if value is None else cri.CriInt64Value(value=value)


def _first_set(own: T | None, of_pod: T | None) -> T | None:
    return of_pod if own is None else own
