"""Fields of a pod's spec that the process runtime does not support, and why.

Each rule yields the field, its value, and the reason. A value that demands no more than the default
is accepted.
"""

from collections.abc import Iterator
from typing import NamedTuple

from podstatus.kube.objects.containers import (
    AppArmorProfile,
    Container,
    SecurityContext,
    SELinuxOptions,
)
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSecurityContext
from podstatus.runtime.process.spec.config_errors import unsupported_field

_UNCONFINED_PROFILES = ("", "Unconfined")
_APP_ARMOR = "AppArmor is not supported by this runtime; remove it, or set Unconfined"
_SELINUX = "this runtime sets no SELinux labels; remove it"
_WINDOWS = "this runtime runs on Linux only; remove it"
_DNS = "pods use the host's network and resolver; remove it"


class UnsupportedField(NamedTuple):
    """A field that is not supported."""

    field: str
    value: object
    reason: str


def check_fields(pod: Pod, container: Container, *, isolated: bool) -> None:
    """Raise CannotStartError for the first unsupported field."""
    for field in _unsupported(pod, container, isolated=isolated):
        raise unsupported_field(*field)


def _unsupported(pod: Pod, container: Container, *, isolated: bool) -> Iterator[UnsupportedField]:
    of_pod = pod.spec.security_context or PodSecurityContext()
    own = container.security_context or SecurityContext()
    yield from _pod_fields(pod, isolated=isolated)
    yield from _pod_context_fields(of_pod)
    yield from _profiles(
        own.app_armor_profile or of_pod.app_armor_profile,
        own.se_linux_options or of_pod.se_linux_options,
    )
    yield from _container_fields(container, own, isolated=isolated)


def _pod_fields(pod: Pod, *, isolated: bool) -> Iterator[UnsupportedField]:
    spec = pod.spec
    if isolated and spec.host_pid:
        reason = (
            "each container has its own pid namespace, by which it is ended as a whole; remove it"
        )
        yield UnsupportedField("hostPID", True, reason)
    if isolated and spec.share_process_namespace:
        reason = "each container has its own pid namespace; remove it"
        yield UnsupportedField("shareProcessNamespace", True, reason)
    if spec.host_users is False:
        reason = "containers are in the agent's user namespace; remove it, or set true"
        yield UnsupportedField("hostUsers", False, reason)
    if spec.host_aliases and not isolated:
        names = tuple(name for alias in spec.host_aliases for name in alias.hostnames or ())
        reason = "/etc/hosts is the host's; run the agent with --isolation=bubblewrap"
        yield UnsupportedField("hostAliases", names, reason)
    if spec.dns_policy == "None" or spec.dns_config is not None:
        field = "dnsConfig" if spec.dns_config is not None else "dnsPolicy"
        yield UnsupportedField(field, spec.dns_policy or "ClusterFirst", _DNS)
    if spec.runtime_class_name:
        reason = "this runtime has no runtime classes; remove it"
        yield UnsupportedField("runtimeClassName", spec.runtime_class_name, reason)
    if spec.resource_claims:
        names = tuple(claim.name for claim in spec.resource_claims)
        yield UnsupportedField("resourceClaims", names, "this runtime has no devices; remove it")
    if spec.os is not None and spec.os.name == "windows":
        yield UnsupportedField("os.name", spec.os.name, _WINDOWS)
    if spec.set_hostname_as_fqdn:
        yield UnsupportedField("setHostnameAsFQDN", True, "there is no cluster domain; remove it")


def _pod_context_fields(context: PodSecurityContext) -> Iterator[UnsupportedField]:
    if context.windows_options is not None:
        yield UnsupportedField("securityContext.windowsOptions", "set", _WINDOWS)
    if context.supplemental_groups_policy not in (None, "Merge", "Strict"):
        reason = "valid values are Merge and Strict"
        field = "securityContext.supplementalGroupsPolicy"
        yield UnsupportedField(field, context.supplemental_groups_policy, reason)


def _container_fields(
    container: Container, context: SecurityContext, *, isolated: bool
) -> Iterator[UnsupportedField]:
    if context.privileged:
        yield UnsupportedField(
            "securityContext.privileged",
            True,
            "privileged containers are not supported; remove it",
        )
    if context.read_only_root_filesystem and not isolated:
        reason = "the root filesystem is the host's; run the agent with --isolation=bubblewrap"
        yield UnsupportedField("securityContext.readOnlyRootFilesystem", True, reason)
    if context.proc_mount not in (None, "", "Default"):
        reason = "/proc cannot be configured; remove it, or set Default"
        yield UnsupportedField("securityContext.procMount", context.proc_mount, reason)
    if context.windows_options is not None:
        yield UnsupportedField("securityContext.windowsOptions", "set", _WINDOWS)
    if container.volume_devices:
        names = tuple(device.name for device in container.volume_devices)
        yield UnsupportedField(
            "volumeDevices", names, "this runtime has no block devices; remove it"
        )
    if container.resources.claims:
        names = tuple(claim.name for claim in container.resources.claims)
        yield UnsupportedField("resources.claims", names, "this runtime has no devices; remove it")


def _profiles(
    app_armor: AppArmorProfile | None,
    labels: SELinuxOptions | None,
) -> Iterator[UnsupportedField]:
    if app_armor is not None and app_armor.type not in _UNCONFINED_PROFILES:
        yield UnsupportedField("securityContext.appArmorProfile.type", app_armor.type, _APP_ARMOR)
    if labels is not None and labels != SELinuxOptions():
        label = labels.level or labels.type or labels.role or labels.user
        yield UnsupportedField("securityContext.seLinuxOptions", label, _SELINUX)
