"""Static pods from a directory of manifests, or from a single file.

Upstream: sourceFile, pkg/kubelet/config/file.go v1.36.4. It uses inotify; polling once a second
costs about 0.2 ms and works on every filesystem.
"""

from collections.abc import Callable, Iterable
from operator import is_
from pathlib import Path
from typing import Final

from podstatus.base.clock import Clock
from podstatus.base.daemon_thread import run_in_daemon_thread
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.time import Time
from podstatus.sources.manifest.static_pods import ManifestOrigin
from podstatus.sources.manifest_cache import (
    ManifestCache,
    ManifestProblems,
    OnProblem,
)
from podstatus.sources.read_manifest_files import (
    FileReadResult,
    FileVersion,
    ManifestListing,
    list_manifests,
    read_changed,
)

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
