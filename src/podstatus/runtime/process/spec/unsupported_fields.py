"""What of a pod's spec cannot be had from processes of this machine, and why.

Each rule is a row: the field, what was asked for, and why it cannot be; a value that asks for
nothing beyond what is there anyway is fine.
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
_APP_ARMOR = "AppArmor is not supported by this runtime; leave it out, or set Unconfined"
_SELINUX = "this runtime sets no SELinux labels; leave it out"
_WINDOWS = "processes of this machine are not of Windows; leave it out"
_DNS = "pods are in the network of the host and use its resolver; leave it out"


class UnsupportedField(NamedTuple):
    """A field that cannot be honoured."""

    field: str
    value: object
    reason: str


def check_fields(pod: Pod, container: Container, *, isolated: bool) -> None:
    """Raise CannotStartError for the first field that cannot be honoured."""
    for refused in _unsupported(pod, container, isolated=isolated):
        raise unsupported_field(*refused)


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
        why = "each container is alone in a pid namespace, which ends it as a whole; leave it out"
        yield UnsupportedField("hostPID", True, why)
    if isolated and spec.share_process_namespace:
        why = "each container is alone in a pid namespace; leave it out"
        yield UnsupportedField("shareProcessNamespace", True, why)
    if spec.host_users is False:
        why = "containers are in the user namespace of the agent; leave it out, or set true"
        yield UnsupportedField("hostUsers", False, why)
    if spec.host_aliases:
        names = tuple(name for alias in spec.host_aliases for name in alias.hostnames or ())
        yield UnsupportedField("hostAliases", names, "/etc/hosts is the host's; leave it out")
    if spec.dns_policy == "None" or spec.dns_config is not None:
        field = "dnsConfig" if spec.dns_config is not None else "dnsPolicy"
        yield UnsupportedField(field, spec.dns_policy or "ClusterFirst", _DNS)
    if spec.runtime_class_name:
        why = "this runtime has no classes; leave it out"
        yield UnsupportedField("runtimeClassName", spec.runtime_class_name, why)
    if spec.resource_claims:
        names = tuple(claim.name for claim in spec.resource_claims)
        yield UnsupportedField("resourceClaims", names, "this runtime has no devices; leave it out")
    if spec.os is not None and spec.os.name == "windows":
        yield UnsupportedField("os.name", spec.os.name, _WINDOWS)
    if spec.set_hostname_as_fqdn:
        yield UnsupportedField(
            "setHostnameAsFQDN", True, "there is no cluster domain here; leave it out"
        )


def _pod_context_fields(context: PodSecurityContext) -> Iterator[UnsupportedField]:
    if context.sysctls:
        names = tuple(sysctl.name for sysctl in context.sysctls)
        why = "sysctls would be set for the whole machine; leave them out"
        yield UnsupportedField("securityContext.sysctls", names, why)
    if context.windows_options is not None:
        yield UnsupportedField("securityContext.windowsOptions", "set", _WINDOWS)
    if context.supplemental_groups_policy not in (None, "Merge", "Strict"):
        why = "there are Merge and Strict"
        field = "securityContext.supplementalGroupsPolicy"
        yield UnsupportedField(field, context.supplemental_groups_policy, why)


def _container_fields(
    container: Container, context: SecurityContext, *, isolated: bool
) -> Iterator[UnsupportedField]:
    if context.privileged:
        yield UnsupportedField(
            "securityContext.privileged",
            True,
            "privileged containers are not supported; leave it out",
        )
    if context.read_only_root_filesystem and not isolated:
        why = "the root is the host's own; run the agent with --isolation=bubblewrap"
        yield UnsupportedField("securityContext.readOnlyRootFilesystem", True, why)
    if context.proc_mount not in (None, "", "Default"):
        why = "what /proc shows is fixed; leave it out, or set Default"
        yield UnsupportedField("securityContext.procMount", context.proc_mount, why)
    if context.windows_options is not None:
        yield UnsupportedField("securityContext.windowsOptions", "set", _WINDOWS)
    if container.volume_devices:
        names = tuple(device.name for device in container.volume_devices)
        yield UnsupportedField(
            "volumeDevices", names, "this runtime has no block devices; leave it out"
        )
    if container.resources.claims:
        names = tuple(claim.name for claim in container.resources.claims)
        yield UnsupportedField(
            "resources.claims", names, "this runtime has no devices; leave it out"
        )


def _profiles(
    app_armor: AppArmorProfile | None,
    labels: SELinuxOptions | None,
) -> Iterator[UnsupportedField]:
    if app_armor is not None and app_armor.type not in _UNCONFINED_PROFILES:
        yield UnsupportedField("securityContext.appArmorProfile.type", app_armor.type, _APP_ARMOR)
    if labels is not None and labels != SELinuxOptions():
        shown = labels.level or labels.type or labels.role or labels.user
        yield UnsupportedField("securityContext.seLinuxOptions", shown, _SELINUX)
