"""List and read the files of a manifest directory. All functions block.

Upstream: extractFromDir, pkg/kubelet/config/file.go v1.36.4.
"""

import os
import stat
from collections.abc import Mapping
from hashlib import sha256
from typing import Literal

import msgspec

from podstatus.kube.scalars.time import Time
from podstatus.sources.manifest.decode import MAX_BYTES, Manifest, ManifestProblem, read_manifest
from podstatus.sources.manifest.static_pods import ManifestOrigin

PathState = Literal["there", "missing", "unreadable"]


class ManifestStamp(msgspec.Struct, frozen=True):
    """File metadata that identifies a version without reading the content."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


class FileVersion(msgspec.Struct, frozen=True):
    """A file version that has been read."""

    stamp: ManifestStamp
    digest: bytes
    """SHA-256 of the content."""


class ManifestListing(msgspec.Struct, frozen=True):
    """The manifests at a path, and problems with other entries."""

    state: PathState
    files: dict[str, ManifestStamp] = {}
    problems: tuple[ManifestProblem, ...] = ()


class FileReadResult(msgspec.Struct, frozen=True):
    """A file that was read; `manifest` is None if its content is unchanged."""

    version: FileVersion | None
    manifest: Manifest | None


def list_manifests(path: str) -> ManifestListing:
    """The files in a directory, or the single file at a path, without dot files."""
    try:
        stat_result = os.stat(path)  # noqa: PTH116 - os functions throughout, for a cheap scan
        if stat.S_ISREG(stat_result.st_mode):
            return ManifestListing("there", {path: _stamp(stat_result)})
        if not stat.S_ISDIR(stat_result.st_mode):
            return _empty_listing("unreadable", path, "neither a file nor a directory")
        return _list_folder(path)
    except FileNotFoundError:
        return _empty_listing(
            "missing", path, "does not exist; create it, or configure another path"
        )
    except (OSError, ValueError) as error:
        return _empty_listing("unreadable", path, f"cannot be read: {_describe_error(error)}")


def read_changed(
    listing: ManifestListing,
    versions: Mapping[str, FileVersion],
    origin: ManifestOrigin,
    now: Time,
    *,
    reread: bool,
) -> dict[str, FileReadResult]:
    """Read new and changed files, or with `reread` all files; results by path.

    A file that changes while it is read is skipped until the next call.
    """
    readings = {}
    for path, stamp in listing.files.items():
        before = versions.get(path)
        if reread or before is None or before.stamp != stamp:
            file_origin = ManifestOrigin(
                source=origin.source, location=path, node_name=origin.node_name
            )
            reading = _read(path, stamp, before, file_origin, now)
            if reading is not None:
                readings[path] = reading
    return readings


def _list_folder(path: str) -> ManifestListing:
    files: dict[str, ManifestStamp] = {}
    problems: list[ManifestProblem] = []
    for name in sorted(os.listdir(path)):  # noqa: PTH208 - see above
        if name.startswith("."):
            continue
        entry = os.path.join(path, name)  # noqa: PTH118 - see above
        try:
            stat_result = os.stat(entry)  # noqa: PTH116 - see above
        except FileNotFoundError:
            if os.path.lexists(entry):
                problems.append(_problem(entry, "symbolic link to a path that does not exist"))
            continue
        except OSError as error:
            problems.append(_problem(entry, f"cannot be read: {_describe_error(error)}"))
            continue
        if stat.S_ISREG(stat_result.st_mode):
            files[entry] = _stamp(stat_result)
        else:
            is_directory = stat.S_ISDIR(stat_result.st_mode)
            message = (
                "directory; manifests in subdirectories are not read"
                if is_directory
                else "not a regular file"
            )
            problems.append(_problem(entry, message))
    return ManifestListing("there", files, tuple(problems))


def _read(
    path: str, stamp: ManifestStamp, before: FileVersion | None, origin: ManifestOrigin, now: Time
) -> FileReadResult | None:
    try:
        data, after = _read_content(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = _problem(path, f"cannot be read: {_describe_error(error)}")
        return FileReadResult(None, Manifest(problems=(problem,)))
    if after != stamp:
        return None
    version = FileVersion(stamp, sha256(data).digest())
    if before is not None and before.digest == version.digest:
        return FileReadResult(version, None)
    return FileReadResult(version, read_manifest(data, origin, now))


def _read_content(path: str) -> tuple[bytes, ManifestStamp]:
    """The content, at most MAX_BYTES + 1 bytes, and the version that was read."""
    # O_NONBLOCK: a named pipe may have replaced the file.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb", buffering=0) as file:  # noqa: PTH123 - a file descriptor
        parts, left = [], MAX_BYTES + 1
        while left and (part := file.read(left)):
            parts.append(part)
            left -= len(part)
        return b"".join(parts), _stamp(os.fstat(fd))


def _stamp(stat_result: os.stat_result) -> ManifestStamp:
    return ManifestStamp(
        stat_result.st_dev,
        stat_result.st_ino,
        stat_result.st_size,
        stat_result.st_mtime_ns,
        stat_result.st_ctime_ns,
    )


def _empty_listing(state: PathState, path: str, message: str) -> ManifestListing:
    return ManifestListing(state, problems=(_problem(path, message),))


def _problem(path: str, message: str) -> ManifestProblem:
    return ManifestProblem(location=path, message=message)


def _describe_error(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
