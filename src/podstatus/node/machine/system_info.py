"""The Node's `nodeInfo`: identity and versions of the machine. Linux and macOS, without root."""

import platform
from pathlib import Path

from podstatus.kube.objects.node import NodeSystemInfo

UPSTREAM_VERSION = "1.36.4"
"""The kubelet version whose behaviour this agent implements."""

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
"""Python's machine names -> GOARCH."""

_MACHINE_ID = ("etc/machine-id", "var/lib/dbus/machine-id")
_BOOT_ID = ("proc/sys/kernel/random/boot_id",)
# The first is readable by root only. Upstream: GetSystemUUID, cadvisor v0.56.2, utils/sysinfo.
_SYSTEM_UUID = (
    "sys/class/dmi/id/product_uuid",
    "proc/device-tree/vm,uuid",
    "sys/hypervisor/uuid",
    *_MACHINE_ID,
)


def kubelet_version(own: str) -> str:
    """The kubelet version of the Node: upstream's, with podstatus' own as build metadata.

    Version comparisons treat it as that kubelet version, as with k3s. A suffix with a hyphen would
    make it a pre-release, which sorts before the release.
    """
    return f"v{UPSTREAM_VERSION}+podstatus.{own}"


def operating_system() -> str:
    """The operating system as GOOS: `linux`, `darwin`."""
    return platform.system().lower()


def architecture() -> str:
    """The architecture as GOARCH: `amd64`, `arm64`."""
    machine = platform.machine().lower()
    return _ARCHITECTURES.get(machine, machine)


def read_system_info(
    *, kubelet_version: str, runtime_version: str, root: Path = Path("/")
) -> NodeSystemInfo:
    """Read the system info; `runtime_version` is `<name>://<version>`.

    Unreadable fields are empty. Upstream: MachineInfo and VersionInfo, nodestatus/setters.go.
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
    """Content of the first file that is readable and not empty."""
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
        pretty_name = platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        pretty_name = None
    mac = platform.mac_ver()[0]
    return pretty_name or (f"macOS {mac}" if mac else platform.system())
