"""Which files are in a folder of manifests, and what is in them. All of it blocks.

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
    """What tells a version of a file from others without reading it."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


class FileVersion(msgspec.Struct, frozen=True):
    """A version of a file that was read."""

    stamp: ManifestStamp
    digest: bytes
    """Of its content."""


class ManifestListing(msgspec.Struct, frozen=True):
    """The manifests at a path, and what else is there."""

    state: PathState
    files: dict[str, ManifestStamp] = {}
    problems: tuple[ManifestProblem, ...] = ()


class FileReadResult(msgspec.Struct, frozen=True):
    """A file that was read; without a manifest if it says what it said before."""

    version: FileVersion | None
    manifest: Manifest | None


def list_manifests(path: str) -> ManifestListing:
    """The files at a path, which may be one itself. Dot files are left out."""
    try:
        found = os.stat(path)  # noqa: PTH116 - as all here, for a scan that costs little
        if stat.S_ISREG(found.st_mode):
            return ManifestListing("there", {path: _stamp(found)})
        if not stat.S_ISDIR(found.st_mode):
            return _empty_listing("unreadable", path, "it is neither a file nor a folder")
        return _list_folder(path)
    except FileNotFoundError:
        return _empty_listing("missing", path, "it does not exist; create it, or name another one")
    except (OSError, ValueError) as error:
        return _empty_listing("unreadable", path, f"it cannot be read: {_describe_error(error)}")


def read_changed(
    listing: ManifestListing,
    versions: Mapping[str, FileVersion],
    origin: ManifestOrigin,
    now: Time,
    *,
    reread: bool,
) -> dict[str, FileReadResult]:
    """Read what is not known yet, or with `reread` everything; by place.

    A file that changes while it is read is left for the next time.
    """
    readings = {}
    for place, stamp in listing.files.items():
        before = versions.get(place)
        if reread or before is None or before.stamp != stamp:
            named = ManifestOrigin(source=origin.source, location=place, node_name=origin.node_name)
            reading = _read(place, stamp, before, named, now)
            if reading is not None:
                readings[place] = reading
    return readings


def _list_folder(path: str) -> ManifestListing:
    files: dict[str, ManifestStamp] = {}
    problems: list[ManifestProblem] = []
    for name in sorted(os.listdir(path)):  # noqa: PTH208 - see above
        if name.startswith("."):
            continue
        place = os.path.join(path, name)  # noqa: PTH118 - see above
        try:
            found = os.stat(place)  # noqa: PTH116 - see above
        except FileNotFoundError:
            if os.path.lexists(place):
                problems.append(_problem(place, "it is a link to something that does not exist"))
            continue
        except OSError as error:
            problems.append(_problem(place, f"it cannot be read: {_describe_error(error)}"))
            continue
        if stat.S_ISREG(found.st_mode):
            files[place] = _stamp(found)
        else:
            is_folder = stat.S_ISDIR(found.st_mode)
            why = "it is a folder; put manifests next to it" if is_folder else "it is no file"
            problems.append(_problem(place, why))
    return ManifestListing("there", files, tuple(problems))


def _read(
    path: str, stamp: ManifestStamp, before: FileVersion | None, origin: ManifestOrigin, now: Time
) -> FileReadResult | None:
    try:
        data, after = _read_content(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = _problem(path, f"it cannot be read: {_describe_error(error)}")
        return FileReadResult(None, Manifest(problems=(problem,)))
    if after != stamp:
        return None
    known = FileVersion(stamp, sha256(data).digest())
    if before is not None and before.digest == known.digest:
        return FileReadResult(known, None)
    return FileReadResult(known, read_manifest(data, origin, now))


def _read_content(path: str) -> tuple[bytes, ManifestStamp]:
    """What is in a file, one byte more than is allowed at most, and which version it is."""
    # Not blocking: a pipe may have taken the place of the file.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(number, "rb", buffering=0) as file:  # noqa: PTH123 - it is open already
        parts, left = [], MAX_BYTES + 1
        while left and (part := file.read(left)):
            parts.append(part)
            left -= len(part)
        return b"".join(parts), _stamp(os.fstat(number))


def _stamp(found: os.stat_result) -> ManifestStamp:
    return ManifestStamp(
        found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    )


def _empty_listing(state: PathState, path: str, message: str) -> ManifestListing:
    return ManifestListing(state, problems=(_problem(path, message),))


def _problem(path: str, message: str) -> ManifestProblem:
    return ManifestProblem(location=path, message=message)


def _describe_error(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
