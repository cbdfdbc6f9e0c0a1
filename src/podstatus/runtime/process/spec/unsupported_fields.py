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
from podstatus.runtime.process.spec.config_errors import not_honoured

_UNCONFINED = ("", "Unconfined")
_APP_ARMOR = "AppArmor is not supported by this runtime; leave it out, or set Unconfined"
_NO_LABELS = "this runtime sets no SELinux labels; leave it out"
_WINDOWS = "processes of this machine are not of Windows; leave it out"
_DNS = "pods are in the network of the host and use its resolver; leave it out"


class Refused(NamedTuple):
    """A field that cannot be honoured."""

    field: str
    value: object
    why: str


def check_fields(pod: Pod, container: Container, *, isolated: bool) -> None:
    """Raise CannotStartError for the first field that cannot be honoured."""
    for refused in _refused(pod, container, isolated=isolated):
        raise not_honoured(*refused)


def _refused(pod: Pod, container: Container, *, isolated: bool) -> Iterator[Refused]:
    of_pod = pod.spec.security_context or PodSecurityContext()
    own = container.security_context or SecurityContext()
    yield from _of_pod(pod, isolated=isolated)
    yield from _of_pod_context(of_pod)
    yield from _profiles(
        own.app_armor_profile or of_pod.app_armor_profile,
        own.se_linux_options or of_pod.se_linux_options,
    )
    yield from _of_container(container, own, isolated=isolated)


def _of_pod(pod: Pod, *, isolated: bool) -> Iterator[Refused]:
    spec = pod.spec
    if isolated and spec.host_pid:
        why = "each container is alone in a pid namespace, which ends it as a whole; leave it out"
        yield Refused("hostPID", True, why)
    if isolated and spec.share_process_namespace:
        why = "each container is alone in a pid namespace; leave it out"
        yield Refused("shareProcessNamespace", True, why)
    if spec.host_users is False:
        why = "containers are in the user namespace of the agent; leave it out, or set true"
        yield Refused("hostUsers", False, why)
    if spec.host_aliases:
        names = tuple(name for alias in spec.host_aliases for name in alias.hostnames or ())
        yield Refused("hostAliases", names, "/etc/hosts is the host's; leave it out")
    if spec.dns_policy == "None" or spec.dns_config is not None:
        field = "dnsConfig" if spec.dns_config is not None else "dnsPolicy"
        yield Refused(field, spec.dns_policy or "ClusterFirst", _DNS)
    if spec.runtime_class_name:
        why = "this runtime has no classes; leave it out"
        yield Refused("runtimeClassName", spec.runtime_class_name, why)
    if spec.resource_claims:
        names = tuple(claim.name for claim in spec.resource_claims)
        yield Refused("resourceClaims", names, "this runtime has no devices; leave it out")
    if spec.os is not None and spec.os.name == "windows":
        yield Refused("os.name", spec.os.name, _WINDOWS)
    if spec.set_hostname_as_fqdn:
        yield Refused("setHostnameAsFQDN", True, "there is no cluster domain here; leave it out")


def _of_pod_context(context: PodSecurityContext) -> Iterator[Refused]:
    if context.sysctls:
        names = tuple(sysctl.name for sysctl in context.sysctls)
        why = "sysctls would be set for the whole machine; leave them out"
        yield Refused("securityContext.sysctls", names, why)
    if context.windows_options is not None:
        yield Refused("securityContext.windowsOptions", "set", _WINDOWS)
    if context.supplemental_groups_policy not in (None, "Merge", "Strict"):
        why = "there are Merge and Strict"
        field = "securityContext.supplementalGroupsPolicy"
        yield Refused(field, context.supplemental_groups_policy, why)


def _of_container(
    container: Container, context: SecurityContext, *, isolated: bool
) -> Iterator[Refused]:
    if context.privileged:
        yield Refused(
            "securityContext.privileged",
            True,
            "privileged containers are not supported; leave it out",
        )
    if context.read_only_root_filesystem and not isolated:
        why = "the root is the host's own; run the agent with --isolation=bubblewrap"
        yield Refused("securityContext.readOnlyRootFilesystem", True, why)
    if context.proc_mount not in (None, "", "Default"):
        why = "what /proc shows is fixed; leave it out, or set Default"
        yield Refused("securityContext.procMount", context.proc_mount, why)
    if context.windows_options is not None:
        yield Refused("securityContext.windowsOptions", "set", _WINDOWS)
    if container.volume_devices:
        names = tuple(device.name for device in container.volume_devices)
        yield Refused("volumeDevices", names, "this runtime has no block devices; leave it out")
    if container.resources.claims:
        names = tuple(claim.name for claim in container.resources.claims)
        yield Refused("resources.claims", names, "this runtime has no devices; leave it out")


def _profiles(
    app_armor: AppArmorProfile | None,
    labels: SELinuxOptions | None,
) -> Iterator[Refused]:
    if app_armor is not None and app_armor.type not in _UNCONFINED:
        yield Refused("securityContext.appArmorProfile.type", app_armor.type, _APP_ARMOR)
    if labels is not None and labels != SELinuxOptions():
        shown = labels.level or labels.type or labels.role or labels.user
        yield Refused("securityContext.seLinuxOptions", shown, _NO_LABELS)
