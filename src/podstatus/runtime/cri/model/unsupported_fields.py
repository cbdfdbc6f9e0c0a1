"""Fields of a pod's spec that the CRI runtime does not support yet, and why.

A field that is neither translated nor named here would be ignored, which no field may be. A value
that demands no more than the default is accepted.
"""

from collections.abc import Iterator
from typing import NamedTuple

from podstatus.kube.objects.containers import (
    AppArmorProfile,
    Container,
    SeccompProfile,
    SecurityContext,
)
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSecurityContext
from podstatus.runtime.process.spec.config_errors import unsupported_field

_UNCONFINED = ("", "Unconfined")
_APP_ARMOR = "this runtime does not set AppArmor profiles yet; remove it, or set Unconfined"
_SECCOMP = "this runtime has no folder of profiles yet; set RuntimeDefault or Unconfined"
_WINDOWS = "this runtime runs on Linux only; remove it"
_DEVICES = "this runtime has no devices; remove it"


class UnsupportedCriField(NamedTuple):
    """A field that is not supported."""

    field: str
    value: object
    reason: str


def check_pod_fields(pod: Pod) -> None:
    """Raise CannotStartError for the first unsupported field of the pod as a whole."""
    for field in (*_pod_fields(pod), *_pod_context_fields(pod)):
        raise unsupported_field(*field)


def check_container_fields(pod: Pod, container: Container) -> None:
    """Raise CannotStartError for the first unsupported field of a container."""
    for field in (*_container_fields(container), *_context_fields(pod, container)):
        raise unsupported_field(*field)


def _pod_fields(pod: Pod) -> Iterator[UnsupportedCriField]:
    spec = pod.spec
    if spec.host_users is False:
        reason = "this runtime does not map users yet; remove it, or set true"
        yield UnsupportedCriField("hostUsers", False, reason)
    if spec.runtime_class_name:
        reason = "this runtime has no runtime classes yet; remove it"
        yield UnsupportedCriField("runtimeClassName", spec.runtime_class_name, reason)
    if spec.resource_claims:
        names = tuple(claim.name for claim in spec.resource_claims)
        yield UnsupportedCriField("resourceClaims", names, _DEVICES)
    if spec.resources is not None and (spec.resources.limits or spec.resources.requests):
        reason = "pods have no cgroup of their own yet; set resources of containers"
        yield UnsupportedCriField("resources", "set", reason)
    if spec.os is not None and spec.os.name == "windows":
        yield UnsupportedCriField("os.name", spec.os.name, _WINDOWS)
    if spec.set_hostname_as_fqdn:
        reason = "there is no cluster domain; remove it"
        yield UnsupportedCriField("setHostnameAsFQDN", True, reason)


def _pod_context_fields(pod: Pod) -> Iterator[UnsupportedCriField]:
    context = pod.spec.security_context or PodSecurityContext()
    if context.windows_options is not None:
        yield UnsupportedCriField("securityContext.windowsOptions", "set", _WINDOWS)
    if context.supplemental_groups_policy not in (None, "Merge"):
        reason = "containerd before 2.0 would ignore it; remove it, or set Merge"
        field = "securityContext.supplementalGroupsPolicy"
        yield UnsupportedCriField(field, context.supplemental_groups_policy, reason)


def _container_fields(container: Container) -> Iterator[UnsupportedCriField]:
    if container.volume_devices:
        names = tuple(device.name for device in container.volume_devices)
        yield UnsupportedCriField("volumeDevices", names, _DEVICES)
    if container.resources.claims:
        names = tuple(claim.name for claim in container.resources.claims)
        yield UnsupportedCriField("resources.claims", names, _DEVICES)
    limits = container.resources.limits or {}
    if pages := sorted(name for name in limits if name.startswith("hugepages-")):
        reason = "this runtime has no huge pages yet; remove it"
        yield UnsupportedCriField("resources.limits", tuple(pages), reason)
    if container.lifecycle is not None and container.lifecycle.stop_signal:
        reason = "containerd before 2.1 would ignore it; set STOPSIGNAL in the image instead"
        signal = container.lifecycle.stop_signal
        yield UnsupportedCriField("lifecycle.stopSignal", signal, reason)
    for mount in container.volume_mounts or ():
        if mount.recursive_read_only not in (None, "", "Disabled", "IfPossible"):
            reason = "containerd before 2.0 would ignore it; set IfPossible, or remove it"
            field = "volumeMounts.recursiveReadOnly"
            yield UnsupportedCriField(field, mount.recursive_read_only, reason)


def _context_fields(pod: Pod, container: Container) -> Iterator[UnsupportedCriField]:
    of_pod = pod.spec.security_context or PodSecurityContext()
    own = container.security_context or SecurityContext()
    if own.windows_options is not None:
        yield UnsupportedCriField("securityContext.windowsOptions", "set", _WINDOWS)
    app_armor = own.app_armor_profile or of_pod.app_armor_profile or AppArmorProfile()
    if app_armor.type not in _UNCONFINED:
        field = "securityContext.appArmorProfile.type"
        yield UnsupportedCriField(field, app_armor.type, _APP_ARMOR)
    seccomp = own.seccomp_profile or of_pod.seccomp_profile or SeccompProfile()
    if seccomp.type not in (*_UNCONFINED, "RuntimeDefault"):
        yield UnsupportedCriField("securityContext.seccompProfile.type", seccomp.type, _SECCOMP)
