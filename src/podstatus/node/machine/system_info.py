"""Who this machine is: what the Node shows as `nodeInfo`. Linux and macOS, without root."""

import platform
from pathlib import Path

from podstatus.kube.objects.node import NodeSystemInfo

UPSTREAM_VERSION = "1.36.4"
"""The kubelet that we are like."""

_ARCHITECTURES = {
    "x86_64": "amd64",
    "amd64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "armv6l": "arm",
    "armv7l": "arm",
    "i386": "386",
    "i686": "386",
}
"""Go's words for those that Python calls otherwise."""

_MACHINE_ID = ("etc/machine-id", "var/lib/dbus/machine-id")
_BOOT_ID = ("proc/sys/kernel/random/boot_id",)
# The first is for root alone. Upstream: GetSystemUUID, cadvisor v0.56.2, utils/sysinfo.
_SYSTEM_UUID = (
    "sys/class/dmi/id/product_uuid",
    "proc/device-tree/vm,uuid",
    "sys/hypervisor/uuid",
    *_MACHINE_ID,
)


def kubelet_version(own: str) -> str:
    """The version that the Node shows: the kubelet's, with ours as metadata of the build.

    Whoever compares versions takes it for that kubelet's, as with k3s. A suffix with a hyphen
    would make it a pre-release, which comes before it.
    """
    return f"v{UPSTREAM_VERSION}+podstatus.{own}"


def operating_system() -> str:
    """Go's word for this one: `linux`, `darwin`."""
    return platform.system().lower()


def architecture() -> str:
    """Go's word for this one: `amd64`, `arm64`."""
    machine = platform.machine().lower()
    return _ARCHITECTURES.get(machine, machine)


def read_system_info(
    *, kubelet_version: str, runtime_version: str, root: Path = Path("/")
) -> NodeSystemInfo:
    """What is known of this machine; `runtime_version` is `<name>://<version>`.

    What cannot be read is empty. Upstream: MachineInfo and VersionInfo, nodestatus/setters.go.
    """
    return NodeSystemInfo(
        machine_id=_read_first(root, _MACHINE_ID),
        system_uuid=_read_first(root, _SYSTEM_UUID),
        boot_id=_read_first(root, _BOOT_ID),
        kernel_version=platform.release(),
        os_image=_read_os_image(),
        container_runtime_version=runtime_version,
        kubelet_version=kubelet_version,
        operating_system=operating_system(),
        architecture=architecture(),
    )


def _read_first(root: Path, paths: tuple[str, ...]) -> str:
    """The first of these files that says something."""
    for path in paths:
        try:
            text = (root / path).read_text(errors="replace").strip(" \n\t\0")
        except OSError:
            continue
        if text:
            return text
    return ""


def _read_os_image() -> str:
    try:
        told = platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        told = None
    mac = platform.mac_ver()[0]
    return told or (f"macOS {mac}" if mac else platform.system())
