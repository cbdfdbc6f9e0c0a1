"""The files of projected volumes: configMaps, secrets, tokens, downward API.

Upstream: MakePayload of pkg/volume/{configmap,secret}; CollectData, pkg/volume/downwardapi;
collectData, pkg/volume/projected; validatePath, pkg/volume/util/atomic_writer.go; all v1.36.4.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.volumes import (
    ConfigMapProjection,
    DownwardAPIProjection,
    DownwardAPIVolumeFile,
    KeyToPath,
    ProjectedVolumeSource,
    SecretProjection,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.runtime.process.spec.config_errors import config_error, unsupported_field
from podstatus.runtime.process.spec.downward_api import (
    DownwardContext,
    metadata_field,
    resource_value,
)
from podstatus.runtime.process.spec.environment import ReferencedObjects, decode_base64
from podstatus.runtime.process.spec.security import Ownership

DEFAULT_MODE = 0o644
_PRIVATE_MODE = 0o600
_MAX_NAME_LENGTH, _MAX_PATH_LENGTH = 255, 4096
_MAX_DEPTH = 100
"""Maximum number of components of a file's path."""
MAX_FILES, MAX_BYTES = 100_000, 32 * 1024 * 1024
"""Limits of one volume. An API object has at most 1 MiB, but a volume may project one key to many
paths, and the pod's annotations into many files.
"""
_UNSUPPORTED = "this runtime does not support it; remove it"


class ProjectedFile(msgspec.Struct, frozen=True, kw_only=True):
    """Contents, mode and owner of a projected file."""

    data: bytes
    mode: int
    user: int | None = None
    """Owner, if not the agent."""


Files = dict[str, ProjectedFile]


class ProjectionInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the contents of a volume depend on."""

    objects: ReferencedObjects
    tokens: Mapping[ServiceAccountTokenProjection, str] = {}
    context: DownwardContext
    owner: Ownership = Ownership()


class VolumeFingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """Identifies the contents of a volume without computing them."""

    source: ProjectedVolumeSource
    owner: Ownership
    versions: tuple[tuple[str, str, str, str], ...]
    """Kind, name, UID and resource version of each object; the last two empty if it is missing."""
    tokens: tuple[str, ...]


def volume_fingerprint(
    source: ProjectedVolumeSource, inputs: ProjectionInputs
) -> VolumeFingerprint | None:
    """Return the fingerprint; None if the contents must be computed to see a change."""
    if any(part.downward_api is not None for part in source.sources or ()):
        return None
    versions = []
    config_maps, secrets = needed_objects(source)
    for kind, names, objects in (
        ("ConfigMap", config_maps, inputs.objects.config_maps),
        ("Secret", secrets, inputs.objects.secrets),
    ):
        for name in sorted(names):
            metadata = None if (obj := objects.get(name)) is None else obj.metadata
            if metadata is not None and not metadata.resource_version:
                return None
            identity = (metadata.uid, metadata.resource_version) if metadata else ("", "")
            versions.append((kind, name, *identity))
    return VolumeFingerprint(
        source=source,
        owner=inputs.owner,
        versions=tuple(versions),
        tokens=tuple(inputs.tokens.values()),
    )


def projected_source(volume: Volume) -> ProjectedVolumeSource | None:
    """Return the volume as a projected one; None for other types."""
    if volume.projected is not None:
        return volume.projected
    if (config_map := volume.config_map) is not None:
        projected = ConfigMapProjection(
            name=config_map.name, items=config_map.items, optional=config_map.optional
        )
        part, mode = VolumeProjection(config_map=projected), config_map.default_mode
    elif (secret := volume.secret) is not None:
        secret_part = SecretProjection(
            name=secret.secret_name, items=secret.items, optional=secret.optional
        )
        part, mode = VolumeProjection(secret=secret_part), secret.default_mode
    elif (downward := volume.downward_api) is not None:
        part = VolumeProjection(downward_api=DownwardAPIProjection(items=downward.items))
        mode = downward.default_mode
    else:
        return None
    return ProjectedVolumeSource(sources=(part,), default_mode=mode)


def needed_objects(source: ProjectedVolumeSource) -> tuple[set[str], set[str]]:
    """Return the names of the configMaps and secrets that a volume projects."""
    parts = source.sources or ()
    config_maps = {part.config_map.name for part in parts if part.config_map is not None}
    return config_maps, {part.secret.name for part in parts if part.secret is not None}


def needed_tokens(source: ProjectedVolumeSource) -> list[ServiceAccountTokenProjection]:
    parts = source.sources or ()
    return [p.service_account_token for p in parts if p.service_account_token is not None]


def projected_files(pod: Pod, source: ProjectedVolumeSource, inputs: ProjectionInputs) -> Files:
    """Return the files of a volume by path. Raises CannotStartError."""
    mode = DEFAULT_MODE if source.default_mode is None else source.default_mode
    files: Files = {}
    size = 0
    for count, (path, file) in enumerate(_all_files(pod, source, mode, inputs), 1):
        size += len(file.data)
        if count > MAX_FILES or size > MAX_BYTES:
            raise config_error(
                f"the volume has more than {MAX_FILES} files or {MAX_BYTES} bytes; "
                "split it, or project fewer keys"
            )
        files[path] = file
    return {_clean_path(path): file for path, file in files.items()}


def _all_files(
    pod: Pod, source: ProjectedVolumeSource, mode: int, inputs: ProjectionInputs
) -> Iterator[tuple[str, ProjectedFile]]:
    for part in source.sources or ():
        yield from _source_files(pod, part, mode, inputs)


def _source_files(
    pod: Pod, part: VolumeProjection, mode: int, inputs: ProjectionInputs
) -> Iterable[tuple[str, ProjectedFile]]:
    if part.config_map is not None:
        return _config_map_files(pod, part.config_map, mode, inputs)
    if part.secret is not None:
        return _secret_files(pod, part.secret, mode, inputs)
    if part.downward_api is not None:
        items = part.downward_api.items or ()
        return ((item.path, _downward_file(pod, item, mode, inputs)) for item in items)
    if (token := part.service_account_token) is not None:
        # The writer gives the volume's group access.
        has_owner = inputs.owner.user is not None or inputs.owner.group is not None
        data = inputs.tokens[token].encode()
        file = ProjectedFile(
            data=data, mode=_PRIVATE_MODE if has_owner else mode, user=inputs.owner.user
        )
        return ((token.path, file),)
    for field, value in (
        ("clusterTrustBundle", part.cluster_trust_bundle),
        ("podCertificate", part.pod_certificate),
    ):
        if value is not None:
            raise unsupported_field("volumes.projected.sources", field, _UNSUPPORTED)
    return ()


def _config_map_files(
    pod: Pod, source: ConfigMapProjection, mode: int, inputs: ProjectionInputs
) -> Iterator[tuple[str, ProjectedFile]]:
    config_map = inputs.objects.config_map(source.name, optional=source.optional)
    if config_map is None:
        return
    texts, binary = config_map.data or {}, config_map.binary_data or {}

    def read(key: str) -> bytes:
        if key in texts:
            return texts[key].encode("utf-8", "surrogateescape")
        where = f"key {key} in ConfigMap {pod.namespace}/{source.name}"
        return decode_base64(where, binary[key])

    keys = ChainMap(texts, binary)
    missing = "configmap references non-existent config key: {}"
    yield from _select_items(keys, read, source.items, mode, missing, optional=source.optional)


def _secret_files(
    pod: Pod, source: SecretProjection, mode: int, inputs: ProjectionInputs
) -> Iterator[tuple[str, ProjectedFile]]:
    secret = inputs.objects.secret(source.name, optional=source.optional)
    if secret is None:
        return
    encoded = secret.data or {}

    def read(key: str) -> bytes:
        return decode_base64(f"key {key} in Secret {pod.namespace}/{source.name}", encoded[key])

    missing = "references non-existent secret key: {}"
    yield from _select_items(encoded, read, source.items, mode, missing, optional=source.optional)


def _select_items(
    keys: Mapping[str, str],
    read: Callable[[str], bytes],
    items: tuple[KeyToPath, ...] | None,
    mode: int,
    missing: str,
    *,
    optional: bool | None,
) -> Iterator[tuple[str, ProjectedFile]]:
    """Yield all keys, or the selected ones, each with its path and mode."""
    for item in items or (KeyToPath(key=key, path=key) for key in keys):
        if item.key in keys:
            item_mode = mode if item.mode is None else item.mode
            yield item.path, ProjectedFile(data=read(item.key), mode=item_mode)
        elif not optional:
            raise config_error(missing.format(item.key))


def _downward_file(
    pod: Pod, item: DownwardAPIVolumeFile, mode: int, inputs: ProjectionInputs
) -> ProjectedFile:
    text = ""
    if item.field_ref is not None:
        text = metadata_field(pod, item.field_ref.field_path)
    elif item.resource_field_ref is not None:
        text = resource_value(pod, None, item.resource_field_ref, inputs.context)
    data = text.encode("utf-8", "surrogateescape")
    return ProjectedFile(data=data, mode=mode if item.mode is None else item.mode)


def _clean_path(path: str) -> str:
    """Normalise a path; it must stay in its volume and must not clash with internal names."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    if not names:
        raise config_error(f"invalid path: must not be empty: {go_quoted(path)}")
    if path.startswith("/"):
        raise config_error(f"invalid path: must be relative path: {path}")
    if ".." in names:
        raise config_error(f"invalid path: must not contain '..': {path}")
    if names[0].startswith(".."):
        raise config_error(f"invalid path: must not start with '..': {path}")
    if (
        "\0" in path
        or len(path) > _MAX_PATH_LENGTH
        or any(len(n) > _MAX_NAME_LENGTH for n in names)
    ):
        raise config_error(
            f"invalid path: filenames must be less than or equal to {_MAX_NAME_LENGTH} characters"
        )
    if len(names) > _MAX_DEPTH:
        raise config_error(
            f"invalid path: more than {_MAX_DEPTH} levels: {path[:_MAX_NAME_LENGTH]}"
        )
    return "/".join(names)
