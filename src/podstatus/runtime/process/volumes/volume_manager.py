"""Creates, fills and updates the volumes of isolated pods."""

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.volumes import ProjectedVolumeSource, Volume
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.validation.names import path_segment
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.paths.safe_paths import (
    UnsafePathError,
    create_private,
    file_type_below,
    open_folder,
)
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.reference_resolver import ReferenceResolver
from podstatus.runtime.process.sandbox.bubblewrap.arguments import HostPath
from podstatus.runtime.process.spec.config_errors import config_error
from podstatus.runtime.process.spec.downward_api import DownwardContext
from podstatus.runtime.process.spec.environment import ReferencedObjects
from podstatus.runtime.process.spec.mount_plan import (
    PlannedMount,
    is_empty_dir,
    is_in_memory,
)
from podstatus.runtime.process.spec.projections import (
    ProjectionInputs,
    VolumeFingerprint,
    needed_objects,
    needed_tokens,
    projected_files,
    projected_source,
    volume_fingerprint,
)
from podstatus.runtime.process.spec.security import HostSupport, Ownership, ownership
from podstatus.runtime.process.volumes.atomic_writer import (
    DATA_LINK,
    set_folder_owner,
    write_atomically,
)
from podstatus.runtime.process.volumes.host_paths import UnsafeHostPathError, prepare_host_path
from podstatus.runtime.process.volumes.memory_volumes import MemoryVolumes
from podstatus.runtime.process.volumes.writer_threads import CancelCheck, VolumeWriterPool

FAILED_MOUNT = "FailedMount"
_WORLD_WRITABLE = 0o777


class VolumeManager:
    """Creates the volumes of pods. Not thread-safe: for one event loop."""

    def __init__(
        self,
        root: Path,
        resolver: ReferenceResolver,
        context: Callable[[], DownwardContext],
        hidden_paths: Sequence[str],
        memory: MemoryVolumes,
        clock: Clock,
    ) -> None:
        self._root = root
        self._memory = memory
        self._resolver = resolver
        self._context = context
        self._hidden_paths = tuple(hidden_paths)
        self._clock = clock
        self._writers = VolumeWriterPool()
        self._fingerprints: dict[PodUID, dict[str, VolumeFingerprint]] = {}

    async def create_volumes(self, pod: Pod, support: HostSupport) -> None:
        """Create and fill the pod's volumes; idempotent. Raises CannotStartError.

        Any failure is retried soon, as upstream (pkg/util/goroutinemap/exponentialbackoff v1.36.4).
        An unsupported volume type is an error only of the containers that mount it.
        """
        owner = ownership(pod, support)
        for volume in pod.spec.volumes or ():
            try:
                await self._create_volume(pod, volume, owner)
            except CannotStartError as error:
                raise _mount_error(volume, error.message) from error
            except OSError as error:
                raise _mount_error(volume, str(error)) from error

    async def refresh_volumes(self, pod: Pod, support: HostSupport) -> None:
        """Update projected volumes from their objects. Raises CannotStartError."""
        owner = ownership(pod, support)
        volumes = [(volume, projected_source(volume)) for volume in pod.spec.volumes or ()]
        projected = [
            (volume, source)
            for volume, source in volumes
            if source is not None and self._folder(pod, volume).is_dir()
        ]
        # Fetch each object once, even if several volumes use it.
        objects = await self._resolver.fetch(
            pod, *_needed_objects(source for _, source in projected)
        )
        # Concurrently, so that a large or failing volume does not delay the others.
        results = await asyncio.gather(
            *(
                self._update_volume(pod, volume, source, objects, owner)
                for volume, source in projected
            ),
            return_exceptions=True,
        )
        for error in results:
            if error is not None:
                raise error

    async def _update_volume(
        self,
        pod: Pod,
        volume: Volume,
        source: ProjectedVolumeSource,
        objects: ReferencedObjects,
        owner: Ownership,
    ) -> None:
        inputs = await self._projection_inputs(pod, source, objects, owner)
        # The pod may be removed meanwhile; its folder must not be created again.
        with suppress(FileNotFoundError):
            await self._write_volume(pod, volume, source, inputs)

    async def forget(self, uid: PodUID) -> None:
        """Stop writing the volumes of a pod that is about to be removed, and drop its state."""
        self._fingerprints.pop(uid, None)
        await self._writers.stop(uid)

    def close(self) -> None:
        """Stop all writers of volumes."""
        self._writers.close()

    def host_path(self, planned: PlannedMount) -> HostPath | None:
        """Return the checked host path of a mount; None for other volumes.

        Raises CannotStartError.
        """
        source = planned.volume.host_path
        if source is None:
            return None
        return prepare_host_path(source, self._hidden_paths, read_only=planned.read_only)

    def source(self, pod: Pod, planned: PlannedMount, container: str) -> Path:
        """Return the path below the pod's folder to mount. Raises CannotStartError."""
        volume = planned.volume
        folder = self._folder(pod, volume)
        if not planned.steps:
            return folder
        if is_empty_dir(volume):
            return _empty_dir_sub_path(folder, planned, container)
        # Only the agent writes here: resolve the current version, as upstream does.
        path = Path(os.path.realpath(folder / DATA_LINK)).joinpath(*planned.steps)
        if not path.exists():
            raise _sub_path_error(planned, container)
        return path

    async def _create_volume(self, pod: Pod, volume: Volume, owner: Ownership) -> None:
        source = projected_source(volume)
        if source is not None:
            objects = await self._resolver.fetch(pod, *needed_objects(source))
            inputs = await self._projection_inputs(pod, source, objects, owner)
            folder = self._folder(pod, volume)
            if not folder.is_dir():
                create_private(folder.parent)
                folder.mkdir()
                folder.chmod(0o755)
            await self._write_volume(pod, volume, source, inputs)
        else:
            # In a thread: thousands of volumes, or a slow disk, take seconds.
            await self._writers.run(
                pod.uid, volume.name, lambda _: self._prepare_volume(pod, volume, owner)
            )

    def _prepare_volume(self, pod: Pod, volume: Volume, owner: Ownership) -> None:
        """Create an emptyDir or check a host path. Runs in a thread."""
        if is_empty_dir(volume):
            folder = self._folder(pod, volume)
            if is_in_memory(volume):
                self._memory.create(pod.uid, volume.name, _size_limit(volume))
            elif not folder.is_dir():
                create_private(folder.parent)
                folder.mkdir()
                folder.chmod(_WORLD_WRITABLE)
            set_folder_owner(folder, owner, writable=True)
        elif volume.host_path is not None:
            # An unsafe path is reported by the containers that mount it.
            with suppress(UnsafeHostPathError):
                prepare_host_path(volume.host_path, self._hidden_paths, read_only=True)

    async def _projection_inputs(
        self, pod: Pod, source: ProjectedVolumeSource, objects: ReferencedObjects, owner: Ownership
    ) -> ProjectionInputs:
        tokens = {
            projection: await self._resolver.token(pod, projection)
            for projection in needed_tokens(source)
        }
        return ProjectionInputs(
            objects=objects, tokens=tokens, context=self._context(), owner=owner
        )

    async def _write_volume(
        self, pod: Pod, volume: Volume, source: ProjectedVolumeSource, inputs: ProjectionInputs
    ) -> None:
        """Write the contents of a projected volume, unless its fingerprint is unchanged."""
        folder, now = self._folder(pod, volume), self._clock.now()
        fingerprint = volume_fingerprint(source, inputs)
        fingerprints = self._fingerprints.get(pod.uid, {})
        if (
            fingerprint is not None
            and fingerprints.get(volume.name) == fingerprint
            and (folder / DATA_LINK).is_dir()
        ):
            return

        def write(check: CancelCheck) -> None:
            files = projected_files(pod, source, inputs)
            set_folder_owner(folder, inputs.owner)
            write_atomically(folder, files, inputs.owner, now, check)

        fingerprints.pop(volume.name, None)
        await self._writers.run(pod.uid, volume.name, write)
        if fingerprint is not None:
            self._fingerprints.setdefault(pod.uid, {})[volume.name] = fingerprint

    def _folder(self, pod: Pod, volume: Volume) -> Path:
        if not volume.name or path_segment(volume.name):
            raise config_error(f"{go_quoted(volume.name)} is not a valid volume name")
        return PodFolder(self._root, pod.uid).volumes / volume.name


def _size_limit(volume: Volume) -> int | None:
    limit = None if volume.empty_dir is None else volume.empty_dir.size_limit
    return None if limit is None else limit.value or None


def _mount_error(volume: Volume, reason: str) -> CannotStartError:
    message = f"MountVolume.SetUp failed for volume {go_quoted(volume.name)} : {reason}"
    return CannotStartError(FAILED_MOUNT, message, retry_soon=True)


def _needed_objects(sources: Iterable[ProjectedVolumeSource]) -> tuple[set[str], set[str]]:
    config_maps: set[str] = set()
    secrets: set[str] = set()
    for source in sources:
        more_config_maps, more_secrets = needed_objects(source)
        config_maps |= more_config_maps
        secrets |= more_secrets
    return config_maps, secrets


def _empty_dir_sub_path(folder: Path, planned: PlannedMount, container: str) -> Path:
    """Return a subPath of a folder that containers write to, without following links."""
    if planned.contender:
        raise config_error(
            f"subPath {go_quoted('/'.join(planned.steps))} of volume "
            f"{go_quoted(planned.volume.name)} cannot be mounted safely: container "
            f"{planned.contender} can change the path meanwhile; mount the whole volume in "
            f"{container}, or use a separate volume"
        )
    try:
        if file_type_below(folder, planned.steps) is None:
            with open_folder(folder, planned.steps, make=folder.stat().st_mode & 0o7777):
                pass
    except (UnsafePathError, OSError) as error:
        raise _sub_path_error(planned, container) from error
    return folder.joinpath(*planned.steps)


def _sub_path_error(planned: PlannedMount, container: str) -> CannotStartError:
    """Upstream's message, which reveals nothing about the host."""
    return config_error(
        f"failed to prepare subPath for volumeMount {go_quoted(planned.volume.name)} of container "
        f"{go_quoted(container)}"
    )
