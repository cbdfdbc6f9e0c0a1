"""EmptyDirs with medium Memory: a tmpfs, mounted at the volume's folder of the pod.

Upstream: setupTmpfs and teardownTmpfsOrSetupDir, pkg/volume/emptydir/empty_dir.go v1.36.4.
"""

import ctypes
import errno
import os
from pathlib import Path

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.paths.safe_paths import (
    FOLDER_FLAGS,
    create_private,
    open_descriptor,
    remove_below,
)
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.spec.config_errors import config_error

_MODE = "mode=0777"
_MS_NOSUID, _MS_NODEV = 2, 4
_MNT_DETACH, _UMOUNT_NOFOLLOW = 2, 8


class MemoryVolumes:
    """Mounts and unmounts the memory volumes of pods. Blocks; call it in a thread."""

    def __init__(self, root: Path) -> None:
        """`root` holds the pods' folders."""
        self._root = root

    def create(self, uid: PodUID, volume: str, max_bytes: int | None) -> None:
        """Mount a volume, unless it is mounted; without `max_bytes`, half of the machine's memory.

        Raises CannotStartError, OSError.
        """
        folder = PodFolder(self._root, uid).volumes / volume
        create_private(folder.parent)
        folder.mkdir(exist_ok=True)
        if is_mount_point(folder):
            return
        options = _MODE if max_bytes is None else f"{_MODE},size={max_bytes}"
        try:
            _mount_tmpfs(folder, options)
        except PermissionError as error:
            raise config_error(
                "an emptyDir with medium Memory needs an agent that may mount a tmpfs: run it as "
                "root, or remove the medium"
            ) from error

    def remove(self, uid: PodUID) -> None:
        """Empty and unmount the volumes of a pod, so that its folder can be removed."""
        try:
            folders = list(PodFolder(self._root, uid).volumes.iterdir())
        except FileNotFoundError:
            return
        for folder in filter(is_mount_point, folders):
            # Sandboxes that still run may have a copy of the mount, which would keep the files.
            with open_descriptor(folder, FOLDER_FLAGS) as opened, os.scandir(opened) as entries:
                for name in [entry.name for entry in entries]:
                    remove_below(opened, name)
            _unmount(folder)


def is_mount_point(folder: Path) -> bool:
    """Return whether a filesystem is mounted at a folder; links are not followed."""
    return not folder.is_symlink() and os.path.ismount(folder)


def _mount_tmpfs(folder: Path, options: str) -> None:
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", flags, options.encode()):
        raise _os_error(folder)


def _unmount(folder: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.umount2(os.fsencode(folder), _MNT_DETACH | _UMOUNT_NOFOLLOW)
    # EINVAL: unmounted meanwhile.
    if failed and ctypes.get_errno() != errno.EINVAL:
        raise _os_error(folder)


def _os_error(folder: Path) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), str(folder))
