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
from podstatus.sources.manifest.decode import MOST_BYTES, Manifest, ManifestProblem, read_manifest
from podstatus.sources.manifest.static_pods import Origin

State = Literal["there", "missing", "unreadable"]


class Stamp(msgspec.Struct, frozen=True):
    """What tells a version of a file from others without reading it."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int


class Known(msgspec.Struct, frozen=True):
    """A version of a file that was read."""

    stamp: Stamp
    digest: bytes
    """Of its content."""


class Listing(msgspec.Struct, frozen=True):
    """The manifests at a path, and what else is there."""

    state: State
    files: dict[str, Stamp] = {}
    problems: tuple[ManifestProblem, ...] = ()


class Reading(msgspec.Struct, frozen=True):
    """A file that was read; without a manifest if it says what it said before."""

    known: Known | None
    manifest: Manifest | None


def list_manifests(path: str) -> Listing:
    """The files at a path, which may be one itself. Dot files are left out."""
    try:
        found = os.stat(path)  # noqa: PTH116 - as all here, for a scan that costs little
        if stat.S_ISREG(found.st_mode):
            return Listing("there", {path: _stamp(found)})
        if not stat.S_ISDIR(found.st_mode):
            return _unlisted("unreadable", path, "it is neither a file nor a folder")
        return _list_folder(path)
    except FileNotFoundError:
        return _unlisted("missing", path, "it does not exist; create it, or name another one")
    except (OSError, ValueError) as error:
        return _unlisted("unreadable", path, f"it cannot be read: {_why(error)}")


def read_changed(
    listing: Listing, known: Mapping[str, Known], origin: Origin, now: Time, *, anew: bool
) -> dict[str, Reading]:
    """Read what is not known yet, or with `anew` everything; by place.

    A file that changes while it is read is left for the next time.
    """
    readings = {}
    for place, stamp in listing.files.items():
        before = known.get(place)
        if anew or before is None or before.stamp != stamp:
            named = Origin(source=origin.source, place=place, node_name=origin.node_name)
            reading = _read(place, stamp, before, named, now)
            if reading is not None:
                readings[place] = reading
    return readings


def _list_folder(path: str) -> Listing:
    files: dict[str, Stamp] = {}
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
            problems.append(_problem(place, f"it cannot be read: {_why(error)}"))
            continue
        if stat.S_ISREG(found.st_mode):
            files[place] = _stamp(found)
        else:
            is_folder = stat.S_ISDIR(found.st_mode)
            why = "it is a folder; put manifests next to it" if is_folder else "it is no file"
            problems.append(_problem(place, why))
    return Listing("there", files, tuple(problems))


def _read(
    place: str, stamp: Stamp, before: Known | None, origin: Origin, now: Time
) -> Reading | None:
    try:
        data, after = _content(place)
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = _problem(place, f"it cannot be read: {_why(error)}")
        return Reading(None, Manifest(problems=(problem,)))
    if after != stamp:
        return None
    known = Known(stamp, sha256(data).digest())
    if before is not None and before.digest == known.digest:
        return Reading(known, None)
    return Reading(known, read_manifest(data, origin, now))


def _content(place: str) -> tuple[bytes, Stamp]:
    """What is in a file, one byte more than is allowed at most, and which version it is."""
    # Not blocking: a pipe may have taken the place of the file.
    number = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(number, "rb", buffering=0) as file:  # noqa: PTH123 - it is open already
        parts, left = [], MOST_BYTES + 1
        while left and (part := file.read(left)):
            parts.append(part)
            left -= len(part)
        return b"".join(parts), _stamp(os.fstat(number))


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _unlisted(state: State, path: str, why: str) -> Listing:
    return Listing(state, problems=(_problem(path, why),))


def _problem(place: str, why: str) -> ManifestProblem:
    return ManifestProblem(place=place, message=why)


def _why(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
