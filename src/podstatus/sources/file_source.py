"""Static pods from a directory of manifests, or from a single file.

Upstream: sourceFile and extractFromDir, pkg/kubelet/config/file.go v1.36.4. It uses inotify;
polling once a second costs about 0.2 ms and works on every filesystem.
"""

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from operator import is_
from pathlib import Path
from typing import Final, Literal

import msgspec

from podstatus.base.clock import Clock
from podstatus.base.daemon_thread import run_in_daemon_thread
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.time import Time
from podstatus.sources.manifest.decode import MAX_BYTES, Manifest, ManifestProblem, read_manifest
from podstatus.sources.manifest.static_pods import ManifestOrigin
from podstatus.sources.manifest_cache import (
    ManifestCache,
    ManifestProblems,
    OnProblem,
)

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


SOURCE: Final = "file"
POLL_SECONDS = 1.0
"""Seconds between two listings of the directory."""
RETRY_MISSING_SECONDS = 0.2
"""Delay before a missing file is looked for again: editors replace files in two steps, and a
removed manifest terminates its pods."""
MAX_INITIAL_POLLS = 5
"""Polls that the first delivery waits for files that change while they are read: a pod that is
missing in the first delivery would be terminated."""


class FileSource:
    """Delivers all pods of a directory: once at the start, then at every change.

    An invalid file keeps the pods of its last valid version. A missing directory has no pods; an
    unreadable one keeps its last pods.
    """

    def __init__(
        self,
        path: str | Path,
        node_name: str,
        deliver: Callable[[Iterable[Pod]], None],
        *,
        clock: Clock,
        on_problem: OnProblem,
        heartbeat: Callable[[], None],
        period: float = 20.0,
    ) -> None:
        self._path = str(path)
        self._origin = ManifestOrigin(source=SOURCE, location=self._path, node_name=node_name)
        self._deliver = deliver
        self._clock = clock
        self._period = period
        self._heartbeat = heartbeat
        self._cache = ManifestCache(on_problem)
        self._path_problems = ManifestProblems(on_problem)
        """Problems of the directory, and of entries that are not manifests."""
        self._versions: dict[str, FileVersion] = {}
        self._missing: frozenset[str] = frozenset()
        """Files that were missing in the last listing, but not in the one before."""
        self._last_full_read: int | None = None
        self._polls = 0
        self._delivered: tuple[Pod, ...] | None = None

    async def run(self) -> None:
        """Poll the directory until cancelled."""
        while True:
            self._heartbeat()
            await self.poll_once()
            await self._clock.wait(RETRY_MISSING_SECONDS if self._missing else POLL_SECONDS)

    async def poll_once(self) -> None:
        """Read the files that have changed; deliver if the pods have changed."""
        now, began = Time.from_unix_nanos(self._clock.now()), self._clock.monotonic()
        reread = self._last_full_read is None or began - self._last_full_read >= self._period * 1e9
        # In a thread: a network filesystem or a large manifest may block.
        listing, readings = await run_in_daemon_thread(self._poll, now, reread)
        if reread:
            self._last_full_read = began
        self._apply(listing, readings)

    def _poll(self, now: Time, reread: bool) -> tuple[ManifestListing, dict[str, FileReadResult]]:  # noqa: FBT001 - for to_thread
        listing = list_manifests(self._path)
        return listing, read_changed(listing, self._versions, self._origin, now, reread=reread)

    def _apply(self, listing: ManifestListing, readings: dict[str, FileReadResult]) -> None:
        problems = {problem.location: problem for problem in listing.problems}
        for location in self._path_problems.locations() - problems.keys():
            self._path_problems.set_problems(location, ())
        for location, problem in problems.items():
            self._path_problems.set_problems(location, (problem,))
        if listing.state == "unreadable":
            return
        for location, reading in readings.items():
            self._apply_file(location, reading)
        # Entries that exist but cannot be read keep their pods.
        unreadable = problems.keys() if listing.state == "there" else ()
        self._forget_missing(self._cache.locations() - listing.files.keys() - set(unreadable))
        self._polls += 1
        if self._polls >= MAX_INITIAL_POLLS or listing.files.keys() <= self._cache.locations():
            self._deliver_changed()

    def _apply_file(self, path: str, reading: FileReadResult) -> None:
        if reading.version is None:
            self._versions.pop(path, None)
        else:
            self._versions[path] = reading.version
        if reading.manifest is not None:
            self._cache.update(path, reading.manifest)

    def _forget_missing(self, missing: frozenset[str]) -> None:
        """Drop the files that were missing in the last listing, too."""
        gone = missing & self._missing
        self._missing = missing - gone
        self._cache.forget(gone)
        for location in gone:
            self._versions.pop(location, None)

    def _deliver_changed(self) -> None:
        if self._missing:
            return  # a file may be being renamed; avoid delivering its pods twice
        pods = self._cache.pods()
        if self._delivered is None or not _are_identical(pods, self._delivered):
            self._delivered = pods
            self._deliver(pods)


def _are_identical(left: tuple[Pod, ...], right: tuple[Pod, ...]) -> bool:
    return len(left) == len(right) and all(map(is_, left, right))
