"""Atomic updates of a volume's files, as in the kubelet.

    volume/key         -> ..data/key
    volume/..data      -> ..2026_11_15_20_25_00.123456789
    volume/..2026_11_…/key

A reader sees the old files or the new ones, never a mix: `..data` is replaced by a rename.
Containers see these volumes read-only, so the agent is the only writer.

Upstream: AtomicWriter, pkg/volume/util/atomic_writer.go v1.36.4.
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from podstatus.kube.scalars.time import Time
from podstatus.runtime.process.spec.projections import ProjectedFile
from podstatus.runtime.process.spec.security import Ownership

DATA_LINK = "..data"
_NEW_DATA_LINK = "..data_tmp"
_GROUP_READ_MODE, _GROUP_FOLDER_MODE = 0o440, 0o2550


def write_atomically(
    volume: Path,
    files: Mapping[str, ProjectedFile],
    owner: Ownership,
    now: int,
    check: Callable[[], None] = lambda: None,
) -> bool:
    """Make `files` the contents of the volume; return False if they already are.

    `check` is called between two files and may raise; the previous contents then stay.
    """
    current = _current_version(volume)
    changed = current is None or not _is_unchanged(volume / current, files, check)
    if changed:
        _switch(volume, _write_version(volume, files, owner, now, check))
    _link_names(volume, {path.partition("/")[0] for path in files}, check)
    _remove_old_versions(volume, check)
    return changed


def _current_version(volume: Path) -> str | None:
    try:
        return (volume / DATA_LINK).readlink().name
    except FileNotFoundError:
        return None


def _is_unchanged(
    folder: Path, files: Mapping[str, ProjectedFile], check: Callable[[], None]
) -> bool:
    if set(_existing_files(folder)) != set(files):
        return False
    for path, file in files.items():
        check()
        if (folder / path).read_bytes() != file.data:
            return False
    return True


def _existing_files(folder: Path) -> Iterator[str]:
    for directory, _, names in os.walk(folder):
        relative = os.path.relpath(directory, folder)
        yield from names if relative == "." else (f"{relative}/{name}" for name in names)


def _write_version(
    volume: Path,
    files: Mapping[str, ProjectedFile],
    owner: Ownership,
    now: int,
    check: Callable[[], None],
) -> str:
    stamp = str(Time.from_unix_nanos(now)).partition(".")[0].rstrip("Z")
    name = f"..{stamp.translate(str.maketrans('-T:', '___'))}.{now % 10**9:09}"
    folder = volume / name
    shutil.rmtree(folder, ignore_errors=True)  # left by a writer that died with the same timestamp
    _create_folder(folder, owner)
    for path, file in files.items():
        check()
        _create_parents(folder, path, owner)
        _write(folder / path, file, owner)
    return name


def _create_parents(folder: Path, path: str, owner: Ownership) -> None:
    for name in path.split("/")[:-1]:
        folder /= name
        if not folder.is_dir():
            _create_folder(folder, owner)


def _create_folder(folder: Path, owner: Ownership) -> None:
    folder.mkdir()
    folder.chmod(0o755)
    set_folder_owner(folder, owner)


def set_folder_owner(folder: Path, owner: Ownership, *, writable: bool = False) -> None:
    """Give the pod's volume group access to a folder."""
    if owner.group is not None:
        os.chown(folder, -1, owner.group)
        mode = stat.S_IMODE(folder.stat().st_mode)
        folder.chmod(mode | _GROUP_FOLDER_MODE | (0o220 if writable else 0))


def _write(path: Path, file: ProjectedFile, owner: Ownership) -> None:
    # Created with mode 0600, so that the file is never readable by more users than intended.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(file.data)
        mode = file.mode
        if file.user is not None or owner.group is not None:
            user = -1 if file.user is None else file.user
            os.fchown(descriptor, user, -1 if owner.group is None else owner.group)
        if owner.group is not None:
            mode |= _GROUP_READ_MODE
        os.fchmod(descriptor, mode)


def _switch(volume: Path, name: str) -> None:
    link = volume / _NEW_DATA_LINK
    link.unlink(missing_ok=True)
    link.symlink_to(name)
    link.rename(volume / DATA_LINK)


def _link_names(volume: Path, names: set[str], check: Callable[[], None]) -> None:
    """Create a link for each name and remove the links of other names."""
    for name in names:
        check()
        with contextlib.suppress(FileExistsError):
            (volume / name).symlink_to(f"{DATA_LINK}/{name}")
    for path in volume.iterdir():
        if not path.name.startswith("..") and path.is_symlink() and path.name not in names:
            path.unlink()


def _remove_old_versions(volume: Path, check: Callable[[], None]) -> None:
    current = _current_version(volume)
    for path in volume.glob("..*"):
        if path.name not in (DATA_LINK, current) and path.is_dir() and not path.is_symlink():
            _remove(path, check)


def _remove(folder: Path, check: Callable[[], None]) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            check()
            if entry.is_dir(follow_symlinks=False):
                _remove(Path(entry.path), check)
            else:
                Path(entry.path).unlink()
    folder.rmdir()
