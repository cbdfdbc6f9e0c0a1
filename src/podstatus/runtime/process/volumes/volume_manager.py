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
    kind_below,
    make_private,
    open_folder,
)
from podstatus.runtime.process.pod_objects import References
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.sandbox.bubblewrap.arguments import HostPath
from podstatus.runtime.process.spec.config_errors import config_error
from podstatus.runtime.process.spec.downward_api import Surroundings
from podstatus.runtime.process.spec.environment import Referenced
from podstatus.runtime.process.spec.mount_plan import PlannedMount, is_empty_dir
from podstatus.runtime.process.spec.projections import (
    Contents,
    Known,
    contents_of,
    needed_objects,
    needed_tokens,
    projected_files,
    projected_source,
)
from podstatus.runtime.process.spec.security import Ownership, Possible, ownership
from podstatus.runtime.process.volumes.atomic_writer import DATA, give_folder, write_atomically
from podstatus.runtime.process.volumes.host_paths import UnsafeHostPathError, ready_host_path
from podstatus.runtime.process.volumes.writer_threads import Check, VolumeWriters

FAILED_MOUNT = "FailedMount"
_FOR_ALL = 0o777


class Volumes:
    """Makes the volumes of pods."""

    def __init__(
        self,
        root: Path,
        references: References,
        around: Callable[[], Surroundings],
        secret: Sequence[str],
        clock: Clock,
    ) -> None:
        self._root = root
        self._references = references
        self._around = around
        self._secret = tuple(secret)
        self._clock = clock
        self._writers = VolumeWriters()
        self._filled: dict[PodUID, dict[str, Contents]] = {}

    async def make(self, pod: Pod, can: Possible) -> None:
        """Make and fill what can be; again if it is there already. Raises CannotStartError.

        What this runtime does not have is told to the containers that mount it.
        """
        owner = ownership(pod, can)
        for volume in pod.spec.volumes or ():
            try:
                await self._make(pod, volume, owner)
            except CannotStartError as error:
                why = f"MountVolume.SetUp failed for volume {go_quoted(volume.name)} : "
                raise CannotStartError(FAILED_MOUNT, why + error.message) from error
            except OSError as error:
                why = f"MountVolume.SetUp failed for volume {go_quoted(volume.name)} : {error}"
                raise CannotStartError(FAILED_MOUNT, why) from error

    async def refresh(self, pod: Pod, can: Possible) -> None:
        """Let the contents follow the objects they are made of. Raises CannotStartError."""
        owner = ownership(pod, can)
        volumes = [(volume, projected_source(volume)) for volume in pod.spec.volumes or ()]
        shown = [
            (volume, source)
            for volume, source in volumes
            if source is not None and self._folder(pod, volume).is_dir()
        ]
        # One object may be in many volumes: it is asked for once.
        objects = await self._references.fetch(pod, *_needed(source for _, source in shown))
        # All at once: a large one keeps no other waiting, and what fails does not either.
        done = await asyncio.gather(
            *(self._refill(pod, volume, source, objects, owner) for volume, source in shown),
            return_exceptions=True,
        )
        for failed in done:
            if failed is not None:
                raise failed

    async def _refill(
        self,
        pod: Pod,
        volume: Volume,
        source: ProjectedVolumeSource,
        objects: Referenced,
        owner: Ownership,
    ) -> None:
        known = await self._known(pod, source, objects, owner)
        # The pod may be removed meanwhile: nothing of it must come back.
        with suppress(FileNotFoundError):
            await self._fill(pod, volume, source, known)

    async def forget(self, uid: PodUID) -> None:
        """Let go of a pod that is about to be removed; nothing of it is written any more."""
        self._filled.pop(uid, None)
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
        return ready_host_path(source, self._secret, read_only=planned.read_only)

    def source(self, pod: Pod, planned: PlannedMount, container: str) -> Path:
        """What of the pod's own is to be mounted. Raises CannotStartError."""
        volume = planned.volume
        folder = self._folder(pod, volume)
        if not planned.steps:
            return folder
        if is_empty_dir(volume):
            return _part_of_empty_dir(folder, planned, container)
        # Ours alone: what is there now, whatever it is replaced by later. As upstream's.
        part = Path(os.path.realpath(folder / DATA)).joinpath(*planned.steps)
        if not part.exists():
            raise _no_part(planned, container)
        return part

    async def _make(self, pod: Pod, volume: Volume, owner: Ownership) -> None:
        source = projected_source(volume)
        if source is not None:
            objects = await self._references.fetch(pod, *needed_objects(source))
            known = await self._known(pod, source, objects, owner)
            folder = self._folder(pod, volume)
            if not folder.is_dir():
                make_private(folder.parent)
                folder.mkdir()
                folder.chmod(0o755)
            await self._fill(pod, volume, source, known)
        else:
            # Thousands of them take seconds, and so does a disk that is slow.
            await self._writers.run(pod.uid, volume.name, lambda _: self._ready(pod, volume, owner))

    def _ready(self, pod: Pod, volume: Volume, owner: Ownership) -> None:
        """Have a folder of the pod, or of the host. In a thread."""
        if is_empty_dir(volume):
            folder = self._folder(pod, volume)
            if not folder.is_dir():
                make_private(folder.parent)
                folder.mkdir()
                folder.chmod(_FOR_ALL)
            give_folder(folder, owner, writable=True)
        elif volume.host_path is not None:
            # What is not safe is reported by the containers that mount it.
            with suppress(UnsafeHostPathError):
                ready_host_path(volume.host_path, self._secret, read_only=True)

    async def _known(
        self, pod: Pod, source: ProjectedVolumeSource, objects: Referenced, owner: Ownership
    ) -> Known:
        """What the contents of a volume are made of."""
        tokens = {w: await self._references.token(pod, w) for w in needed_tokens(source)}
        return Known(objects=objects, tokens=tokens, around=self._around(), owner=owner)

    async def _fill(
        self, pod: Pod, volume: Volume, source: ProjectedVolumeSource, known: Known
    ) -> None:
        """Put the contents into a volume, unless they are there."""
        folder, now = self._folder(pod, volume), self._clock.now()
        contents = contents_of(source, known)
        filled = self._filled.get(pod.uid, {})
        if contents is not None and filled.get(volume.name) == contents and _has_data(folder):
            return

        def write(check: Check) -> None:
            files = projected_files(pod, source, known)
            give_folder(folder, known.owner)
            write_atomically(folder, files, known.owner, now, check)

        filled.pop(volume.name, None)
        await self._writers.run(pod.uid, volume.name, write)
        if contents is not None:
            self._filled.setdefault(pod.uid, {})[volume.name] = contents

    def _folder(self, pod: Pod, volume: Volume) -> Path:
        if not volume.name or path_segment(volume.name):
            raise config_error(f"{go_quoted(volume.name)} is no name of a volume")
        return PodFolder(self._root, pod.uid).volumes / volume.name


def _has_data(folder: Path) -> bool:
    return (folder / DATA).is_dir()


def _needed(sources: Iterable[ProjectedVolumeSource]) -> tuple[set[str], set[str]]:
    config_maps: set[str] = set()
    secrets: set[str] = set()
    for source in sources:
        more_config_maps, more_secrets = needed_objects(source)
        config_maps |= more_config_maps
        secrets |= more_secrets
    return config_maps, secrets


def _part_of_empty_dir(folder: Path, planned: PlannedMount, container: str) -> Path:
    """A part of a folder that containers write to: no link is followed on the way to it."""
    if planned.contended:
        raise config_error(
            f"subPath {go_quoted('/'.join(planned.steps))} of volume "
            f"{go_quoted(planned.volume.name)} cannot be mounted safely: container "
            f"{planned.contended} can change the way to it meanwhile; mount the whole volume in "
            f"{container}, or a volume of its own"
        )
    try:
        if kind_below(folder, planned.steps) is None:
            with open_folder(folder, planned.steps, make=folder.stat().st_mode & 0o7777):
                pass
    except (UnsafePathError, OSError) as error:
        raise _no_part(planned, container) from error
    return folder.joinpath(*planned.steps)


def _no_part(planned: PlannedMount, container: str) -> CannotStartError:
    """Upstream's words, which tell nothing about the host."""
    return config_error(
        f"failed to prepare subPath for volumeMount {go_quoted(planned.volume.name)} of container "
        f"{go_quoted(container)}"
    )
