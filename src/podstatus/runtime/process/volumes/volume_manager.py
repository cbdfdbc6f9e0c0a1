"""The volumes of pods that are isolated: made, filled and found again."""

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
from podstatus.runtime.process.pod_objects import ReferenceResolver
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.sandbox.bubblewrap.arguments import HostPath
from podstatus.runtime.process.spec.config_errors import config_error
from podstatus.runtime.process.spec.downward_api import DownwardContext
from podstatus.runtime.process.spec.environment import ReferencedObjects
from podstatus.runtime.process.spec.mount_plan import PlannedMount, is_empty_dir
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
from podstatus.runtime.process.volumes.writer_threads import CancelCheck, VolumeWriterPool

FAILED_MOUNT = "FailedMount"
_WORLD_WRITABLE = 0o777


class VolumeManager:
    """Makes the volumes of pods."""

    def __init__(
        self,
        root: Path,
        resolver: ReferenceResolver,
        context: Callable[[], DownwardContext],
        hidden_paths: Sequence[str],
        clock: Clock,
    ) -> None:
        self._root = root
        self._resolver = resolver
        self._context = context
        self._hidden_paths = tuple(hidden_paths)
        self._clock = clock
        self._writers = VolumeWriterPool()
        self._fingerprints: dict[PodUID, dict[str, VolumeFingerprint]] = {}

    async def create_volumes(self, pod: Pod, support: HostSupport) -> None:
        """Make and fill what can be; again if it is there already. Raises CannotStartError.

        What this runtime does not have is told to the containers that mount it.
        """
        owner = ownership(pod, support)
        for volume in pod.spec.volumes or ():
            try:
                await self._create_volume(pod, volume, owner)
            except CannotStartError as error:
                why = f"MountVolume.SetUp failed for volume {go_quoted(volume.name)} : "
                raise CannotStartError(FAILED_MOUNT, why + error.message) from error
            except OSError as error:
                why = f"MountVolume.SetUp failed for volume {go_quoted(volume.name)} : {error}"
                raise CannotStartError(FAILED_MOUNT, why) from error

    async def refresh_volumes(self, pod: Pod, support: HostSupport) -> None:
        """Let the contents follow the objects they are made of. Raises CannotStartError."""
        owner = ownership(pod, support)
        volumes = [(volume, projected_source(volume)) for volume in pod.spec.volumes or ()]
        shown = [
            (volume, source)
            for volume, source in volumes
            if source is not None and self._folder(pod, volume).is_dir()
        ]
        # One object may be in many volumes: it is asked for once.
        objects = await self._resolver.fetch(pod, *_needed_objects(source for _, source in shown))
        # All at once: a large one keeps no other waiting, and what fails does not either.
        done = await asyncio.gather(
            *(self._update_volume(pod, volume, source, objects, owner) for volume, source in shown),
            return_exceptions=True,
        )
        for failed in done:
            if failed is not None:
                raise failed

    async def _update_volume(
        self,
        pod: Pod,
        volume: Volume,
        source: ProjectedVolumeSource,
        objects: ReferencedObjects,
        owner: Ownership,
    ) -> None:
        known = await self._projection_inputs(pod, source, objects, owner)
        # The pod may be removed meanwhile: nothing of it must come back.
        with suppress(FileNotFoundError):
            await self._write_volume(pod, volume, source, known)

    async def forget(self, uid: PodUID) -> None:
        """Let go of a pod that is about to be removed; nothing of it is written any more."""
        self._fingerprints.pop(uid, None)
        await self._writers.stop(uid)

    def close(self) -> None:
        """Write nothing any more."""
        self._writers.close()

    def host_path(self, planned: PlannedMount) -> HostPath | None:
        """What of the host was asked for, checked; None if it is the pod's own.

        Raises CannotStartError.
        """
        source = planned.volume.host_path
        if source is None:
            return None
        return prepare_host_path(source, self._hidden_paths, read_only=planned.read_only)

    def source(self, pod: Pod, planned: PlannedMount, container: str) -> Path:
        """What of the pod's own is to be mounted. Raises CannotStartError."""
        volume = planned.volume
        folder = self._folder(pod, volume)
        if not planned.steps:
            return folder
        if is_empty_dir(volume):
            return _empty_dir_sub_path(folder, planned, container)
        # Ours alone: what is there now, whatever it is replaced by later. As upstream's.
        part = Path(os.path.realpath(folder / DATA_LINK)).joinpath(*planned.steps)
        if not part.exists():
            raise _sub_path_error(planned, container)
        return part

    async def _create_volume(self, pod: Pod, volume: Volume, owner: Ownership) -> None:
        source = projected_source(volume)
        if source is not None:
            objects = await self._resolver.fetch(pod, *needed_objects(source))
            known = await self._projection_inputs(pod, source, objects, owner)
            folder = self._folder(pod, volume)
            if not folder.is_dir():
                create_private(folder.parent)
                folder.mkdir()
                folder.chmod(0o755)
            await self._write_volume(pod, volume, source, known)
        else:
            # Thousands of them take seconds, and so does a disk that is slow.
            await self._writers.run(
                pod.uid, volume.name, lambda _: self._prepare_volume(pod, volume, owner)
            )

    def _prepare_volume(self, pod: Pod, volume: Volume, owner: Ownership) -> None:
        """Have a folder of the pod, or of the host. In a thread."""
        if is_empty_dir(volume):
            folder = self._folder(pod, volume)
            if not folder.is_dir():
                create_private(folder.parent)
                folder.mkdir()
                folder.chmod(_WORLD_WRITABLE)
            set_folder_owner(folder, owner, writable=True)
        elif volume.host_path is not None:
            # What is not safe is reported by the containers that mount it.
            with suppress(UnsafeHostPathError):
                prepare_host_path(volume.host_path, self._hidden_paths, read_only=True)

    async def _projection_inputs(
        self, pod: Pod, source: ProjectedVolumeSource, objects: ReferencedObjects, owner: Ownership
    ) -> ProjectionInputs:
        """What the contents of a volume are made of."""
        tokens = {w: await self._resolver.token(pod, w) for w in needed_tokens(source)}
        return ProjectionInputs(
            objects=objects, tokens=tokens, context=self._context(), owner=owner
        )

    async def _write_volume(
        self, pod: Pod, volume: Volume, source: ProjectedVolumeSource, inputs: ProjectionInputs
    ) -> None:
        """Put the contents into a volume, unless they are there."""
        folder, now = self._folder(pod, volume), self._clock.now()
        contents = volume_fingerprint(source, inputs)
        filled = self._fingerprints.get(pod.uid, {})
        if contents is not None and filled.get(volume.name) == contents and _has_data(folder):
            return

        def write(check: CancelCheck) -> None:
            files = projected_files(pod, source, inputs)
            set_folder_owner(folder, inputs.owner)
            write_atomically(folder, files, inputs.owner, now, check)

        filled.pop(volume.name, None)
        await self._writers.run(pod.uid, volume.name, write)
        if contents is not None:
            self._fingerprints.setdefault(pod.uid, {})[volume.name] = contents

    def _folder(self, pod: Pod, volume: Volume) -> Path:
        if not volume.name or path_segment(volume.name):
            raise config_error(f"{go_quoted(volume.name)} is no name of a volume")
        return PodFolder(self._root, pod.uid).volumes / volume.name


def _has_data(folder: Path) -> bool:
    return (folder / DATA_LINK).is_dir()


def _needed_objects(sources: Iterable[ProjectedVolumeSource]) -> tuple[set[str], set[str]]:
    config_maps: set[str] = set()
    secrets: set[str] = set()
    for source in sources:
        more_config_maps, more_secrets = needed_objects(source)
        config_maps |= more_config_maps
        secrets |= more_secrets
    return config_maps, secrets


def _empty_dir_sub_path(folder: Path, planned: PlannedMount, container: str) -> Path:
    """A part of a folder that containers write to: no link is followed on the way to it."""
    if planned.contender:
        raise config_error(
            f"subPath {go_quoted('/'.join(planned.steps))} of volume "
            f"{go_quoted(planned.volume.name)} cannot be mounted safely: container "
            f"{planned.contender} can change the way to it meanwhile; mount the whole volume in "
            f"{container}, or a volume of its own"
        )
    try:
        if file_type_below(folder, planned.steps) is None:
            with open_folder(folder, planned.steps, make=folder.stat().st_mode & 0o7777):
                pass
    except (UnsafePathError, OSError) as error:
        raise _sub_path_error(planned, container) from error
    return folder.joinpath(*planned.steps)


def _sub_path_error(planned: PlannedMount, container: str) -> CannotStartError:
    """Upstream's words, which tell nothing about the host."""
    return config_error(
        f"failed to prepare subPath for volumeMount {go_quoted(planned.volume.name)} of container "
        f"{go_quoted(container)}"
    )
