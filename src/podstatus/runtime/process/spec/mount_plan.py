"""Validates the volumeMounts of a container.

Upstream: makeMounts, pkg/kubelet/kubelet_pods.go v1.36.4.
"""

import posixpath
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import structs

from podstatus.kube.expansion import ArgumentListTooLongError, expand_strictly
from podstatus.kube.objects.containers import Container, VolumeMount
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.volumes import Volume
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.runtime.process.spec.config_errors import config_error, unsupported_field
from podstatus.runtime.process.spec.projections import projected_source

TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path, not a token
MEMORY = "Memory"
_SUPPORTED_VOLUMES = "emptyDir, hostPath, configMap, secret, downwardAPI and projected"


class PlannedMount(msgspec.Struct, frozen=True, kw_only=True):
    """A volume or a subPath of it, and its target in the container."""

    volume: Volume
    steps: tuple[str, ...]
    """Components of the subPath."""
    target: str
    read_only: bool
    contender: str = ""
    """Container that may modify the subPath while it is resolved; empty for none."""


def plan_mounts(pod: Pod, container: Container, env: Mapping[str, str]) -> tuple[PlannedMount, ...]:
    """Return the validated mounts of a container. Raises CannotStartError."""
    volumes = {volume.name: volume for volume in pod.spec.volumes or ()}
    return tuple(
        _plan_mount(pod, container, mount, volumes, env) for mount in container.volume_mounts or ()
    )


def volume_type(volume: Volume) -> str:
    """Return the volume's type as spelled in the spec; `emptyDir` if none is set."""
    for field in structs.fields(volume):
        if field.name != "name" and getattr(volume, field.name) is not None:
            return field.encode_name
    return "emptyDir"


def is_empty_dir(volume: Volume) -> bool:
    return volume_type(volume) == "emptyDir"


def is_in_memory(volume: Volume) -> bool:
    """Return whether it is an emptyDir with medium Memory."""
    return volume.empty_dir is not None and volume.empty_dir.medium == MEMORY


def concurrent_writers(
    pod: Pod, container: Container, volume: str
) -> Iterator[tuple[Container, VolumeMount]]:
    """Yield the containers that may write to a volume while this container is started."""
    for other in _concurrent_containers(pod, container):
        for mount in other.volume_mounts or ():
            if mount.name == volume and not mount.read_only:
                yield other, mount


def mount_target(path: str, field: str) -> str:
    """Normalise a path in a container. Raises CannotStartError."""
    target = posixpath.normpath("/" + path.lstrip("/"))
    if "\0" in path or ".." in path.split("/"):
        raise unsupported_field(field, path, "the path is not valid; write it without ..")
    if target in {"/", "/proc"} or target.startswith("/proc/"):
        raise unsupported_field(field, path, "nothing can be mounted there; choose another path")
    return target


def _plan_mount(
    pod: Pod,
    container: Container,
    mount: VolumeMount,
    volumes: Mapping[str, Volume],
    env: Mapping[str, str],
) -> PlannedMount:
    volume = volumes.get(mount.name)
    if volume is None:
        where = f"{go_quoted(mount.name)} to mount into container {go_quoted(container.name)}"
        raise config_error(f"cannot find volume {where}")
    _check_type(volume)
    if mount.mount_propagation not in (None, "", "None"):
        reason = "mounts never propagate between host and containers; remove the field"
        raise unsupported_field("volumeMounts.mountPropagation", mount.mount_propagation, reason)
    steps = _sub_path(mount, env)
    if steps and volume.host_path is not None:
        reason = "the path may change on the host; put the whole path into hostPath.path"
        raise unsupported_field("volumeMounts.subPath", "/".join(steps), reason)
    is_projected = projected_source(volume) is not None
    return PlannedMount(
        volume=volume,
        steps=steps,
        target=mount_target(mount.mount_path, "volumeMounts.mountPath"),
        read_only=mount.read_only or is_projected,
        contender="" if is_projected else _contender(pod, container, mount.name, steps),
    )


def _check_type(volume: Volume) -> None:
    kind = volume_type(volume)
    if kind == "emptyDir" and volume.empty_dir is not None:
        medium = volume.empty_dir.medium
        if medium not in ("", MEMORY):
            reason = "this runtime has no huge pages; remove it, or set Memory"
            raise unsupported_field("volumes.emptyDir.medium", medium, reason)
    if kind not in _SUPPORTED_VOLUMES.replace(" and ", ", ").split(", "):
        reason = f"this runtime does not support this type; supported: {_SUPPORTED_VOLUMES}"
        raise unsupported_field(f"volumes.{kind}", volume.name, reason)


def _sub_path(mount: VolumeMount, env: Mapping[str, str]) -> tuple[str, ...]:
    path = mount.sub_path
    if mount.sub_path_expr:
        try:
            path, missing = expand_strictly(mount.sub_path_expr, env)
        except ArgumentListTooLongError as error:
            raise config_error(f"subPathExpr of volume {go_quoted(mount.name)}: {error}") from error
        if missing:
            raise config_error(f"missing value for {', '.join(missing)}")
    if path.startswith("/"):
        raise config_error(f"error SubPath `{path}` must not be an absolute path")
    if ".." in path.split("/"):
        raise config_error(f"unable to provision SubPath `{path}`: must not contain '..'")
    if "\0" in path:
        raise config_error("unable to provision SubPath: must not contain NUL")
    return split_steps(path)


def split_steps(path: str) -> tuple[str, ...]:
    """Return the components of a path, without empty ones and dots."""
    return tuple(name for name in path.split("/") if name not in ("", "."))


def _contender(pod: Pod, container: Container, volume: str, steps: tuple[str, ...]) -> str:
    """Return a container that could insert a link between the check and the mount, if any."""
    if not steps:
        return ""
    for other, mount in concurrent_writers(pod, container, volume):
        other_steps = () if mount.sub_path_expr else split_steps(mount.sub_path)
        if len(other_steps) < len(steps) and steps[: len(other_steps)] == other_steps:
            return other.name
    return ""


def _concurrent_containers(pod: Pod, container: Container) -> Iterator[Container]:
    """Yield the containers that may run while this one is started."""
    spec = pod.spec
    plain_init = any(
        init.name == container.name and not is_restartable_init_container(init)
        for init in spec.init_containers or ()
    )
    sidecars = (c for c in spec.init_containers or () if is_restartable_init_container(c))
    later = () if plain_init else (*(spec.containers or ()), *(spec.ephemeral_containers or ()))
    for other in (*sidecars, *later):
        if other.name != container.name:
            yield other
