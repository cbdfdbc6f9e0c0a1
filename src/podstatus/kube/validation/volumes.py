"""Validation of the volumes of a pod and of the mounts of its containers.

Upstream: ValidateVolumes, ValidateVolumeMounts, pkg/apis/core/validation/validation.go
v1.36.4. Only volumes that a node can create by itself are validated in full; all others must have a
single source.
"""

from typing import Any

from podstatus.kube.objects.containers import Container, VolumeMount
from podstatus.kube.objects.volumes import (
    ConfigMapVolumeSource,
    EmptyDirVolumeSource,
    HostPathVolumeSource,
    KeyToPath,
    PersistentVolumeClaimVolumeSource,
    SecretVolumeSource,
    Volume,
)
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid_value,
    not_found,
    required,
    required_name,
    unsupported,
)
from podstatus.kube.validation.names import dns_label

_ZERO = Quantity("0")
_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_MODE_LIMIT = 0o777


def validate_volumes(volumes: tuple[Volume, ...]) -> tuple[dict[str, Volume], list[FieldError]]:
    """Return the volumes that can be mounted, by name, and the errors of all volumes."""
    usable: dict[str, Volume] = {}
    errors: list[FieldError] = []
    for index, volume in enumerate(volumes):
        field = f"spec.volumes[{index}]"
        volume_errors = _validate_source(field, volume)
        volume_errors += required_name(f"{field}.name", volume.name, dns_label)
        if volume.name in usable:
            volume_errors.append(duplicate(f"{field}.name", volume.name))
        elif not volume_errors:
            usable[volume.name] = volume
        errors += volume_errors
    return usable, errors


def validate_mounts(
    field: str, container: Container, volumes: dict[str, Volume]
) -> list[FieldError]:
    errors: list[FieldError] = []
    paths: set[str] = set()
    for index, mount in enumerate(container.volume_mounts or ()):
        path = f"{field}.volumeMounts[{index}]"
        if not mount.name:
            errors.append(required(f"{path}.name"))
        if mount.name not in volumes:
            errors.append(not_found(f"{path}.name", mount.name))
        if not mount.mount_path:
            errors.append(required(f"{path}.mountPath"))
        if mount.mount_path in paths:
            errors.append(invalid_value(f"{path}.mountPath", mount.mount_path, "must be unique"))
        paths.add(mount.mount_path)
        errors += _validate_sub_paths(f"{field}.volumeMounts", path, mount)
    for index, device in enumerate(container.volume_devices or ()):
        path = f"{field}.volumeDevices[{index}]"
        if device.name not in volumes:
            errors.append(not_found(f"{path}.name", device.name))
        if not device.device_path:
            errors.append(required(f"{path}.devicePath"))
    return errors


def _validate_sub_paths(field: str, path: str, mount: VolumeMount) -> list[FieldError]:
    errors = []
    if mount.sub_path:
        errors += _validate_descending(f"{field}.subPath", mount.sub_path)
    if mount.sub_path_expr:
        if mount.sub_path:
            detail = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid_value(f"{path}.subPathExpr", mount.sub_path_expr, detail))
        errors += _validate_descending(f"{field}.subPathExpr", mount.sub_path_expr)
    return errors


def _validate_descending(field: str, path: str) -> list[FieldError]:
    errors = _validate_no_parent_references(field, path)
    if path.startswith("/"):
        errors.insert(0, invalid_value(field, path, "must be a relative path"))
    return errors


def _validate_no_parent_references(field: str, path: str) -> list[FieldError]:
    if ".." in path.split("/"):
        return [invalid_value(field, path, "must not contain '..'")]
    return []


def _validate_source(field: str, volume: Volume) -> list[FieldError]:
    sources = _sources(volume)
    if not sources:
        return [required(field, "must specify a volume type")]
    first, *others = sources
    detail = "may not specify more than 1 volume type"
    errors = [forbidden(f"{field}.{name}", detail) for name in others]
    return _validate_chosen_source(f"{field}.{first}", getattr(volume, sources[first])) + errors


def _sources(volume: Volume) -> dict[str, str]:
    """Return the sources of a volume by wire name, emptyDir first."""
    names = zip(volume.__struct_encode_fields__, volume.__struct_fields__, strict=True)
    sources = {
        wire: name for wire, name in names if name != "name" and getattr(volume, name) is not None
    }
    return {wire: sources[wire] for wire in sorted(sources, key=lambda wire: wire != "emptyDir")}


def _validate_chosen_source(field: str, source: Any) -> list[FieldError]:
    match source:
        case EmptyDirVolumeSource(size_limit=size):
            if size is None or size.compare(_ZERO) >= 0:
                return []
            detail = "SizeLimit field must be a valid resource quantity"
            return [forbidden(f"{field}.sizeLimit", detail)]
        case HostPathVolumeSource():
            return _validate_host_path(field, source)
        case SecretVolumeSource(secret_name=name):
            errors = [] if name else [required(f"{field}.secretName")]
            return errors + _validate_files(field, source.default_mode, source.items or ())
        case ConfigMapVolumeSource(name=name):
            errors = [] if name else [required(f"{field}.name")]
            return errors + _validate_files(field, source.default_mode, source.items or ())
        case PersistentVolumeClaimVolumeSource(claim_name=name):
            return [] if name else [required(f"{field}.claimName")]
    return []


def _validate_host_path(field: str, source: HostPathVolumeSource) -> list[FieldError]:
    if not source.path:
        return [required(f"{field}.path")]
    errors = _validate_no_parent_references(f"{field}.path", source.path)
    if source.type is not None and source.type not in _HOST_PATH_TYPES:
        errors.append(unsupported(f"{field}.type", source.type, _HOST_PATH_TYPES))
    return errors


def _validate_files(
    field: str, default_mode: int | None, items: tuple[KeyToPath, ...]
) -> list[FieldError]:
    errors = _validate_mode(f"{field}.defaultMode", default_mode)
    for index, item in enumerate(items):
        path = f"{field}.items[{index}]"
        if not item.key:
            errors.append(required(f"{path}.key"))
        if not item.path:
            errors.append(required(f"{path}.path"))
        errors += _validate_descending(f"{path}.path", item.path)
        if item.path.startswith("..") and not item.path.startswith("../"):
            errors.append(invalid_value(f"{path}.path", item.path, "must not start with '..'"))
        errors += _validate_mode(f"{path}.mode", item.mode)
    return errors


def _validate_mode(field: str, mode: int | None) -> list[FieldError]:
    if mode is None or 0 <= mode <= _MODE_LIMIT:
        return []
    detail = "must be a number between 0 and 0777 (octal), both inclusive"
    return [invalid_value(field, mode, detail)]
