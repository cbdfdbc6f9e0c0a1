"""What kube-apiserver fills in when it reads a volume of a pod, in place.

Upstream: SetDefaults_*VolumeSource, pkg/apis/core/v1/defaults.go v1.36.4.
"""

from typing import Any

from podstatus.kube.rules.images import is_latest

_FILE_MODE = {"defaultMode": 0o644}
_SOURCES: dict[str, dict[str, Any]] = {
    "secret": _FILE_MODE,
    "configMap": _FILE_MODE,
    "downwardAPI": _FILE_MODE,
    "projected": _FILE_MODE,
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "readOnly": False,
        "kind": "Shared",
    },
}
_TOKEN_SECONDS = 3600


def fill_volume(volume: dict[str, Any]) -> None:
    """Fill in the defaults of one volume; one that says nothing else is an empty folder."""
    if not any(value is not None for key, value in volume.items() if key != "name"):
        volume["emptyDir"] = {}
    for kind, defaults in _SOURCES.items():
        if volume.get(kind) is not None:
            _fill(volume[kind], defaults)
    _fill_files(volume.get("downwardAPI"))
    for source in (volume.get("projected") or {}).get("sources") or []:
        _fill_files(source.get("downwardAPI"))
        if source.get("serviceAccountToken") is not None:
            _fill(source["serviceAccountToken"], {"expirationSeconds": _TOKEN_SECONDS})
    if volume.get("image") is not None:
        latest = is_latest(volume["image"].get("reference", ""))
        _fill(volume["image"], {"pullPolicy": "Always" if latest else "IfNotPresent"})
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        _fill(template.setdefault("spec", {}), {"volumeMode": "Filesystem"})


def _fill_files(source: dict[str, Any] | None) -> None:
    for item in (source or {}).get("items") or []:
        if item.get("fieldRef") is not None:
            _fill(item["fieldRef"], {"apiVersion": "v1"})


def _fill(holder: dict[str, Any], defaults: dict[str, Any]) -> None:
    for key, value in defaults.items():
        if holder.get(key) is None:
            holder[key] = value
