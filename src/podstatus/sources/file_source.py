"""Static pods out of a folder of manifests, or out of one file.

Upstream: sourceFile, pkg/kubelet/config/file.go v1.36.4. It has the kernel tell what happens in the
folder; we look once a second, which costs some 0.2 ms and works on every file system.
"""

from collections.abc import Callable, Iterable
from operator import is_
from pathlib import Path
from typing import Final

from podstatus.base.aio import SystemClock
from podstatus.base.clock import Clock
from podstatus.base.daemon_thread import run_in_daemon_thread
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.time import Time
from podstatus.sources.manifest.static_pods import ManifestOrigin
from podstatus.sources.manifest_cache import (
    ManifestCache,
    ManifestProblems,
    OnProblem,
    ignore_problem,
)
from podstatus.sources.manifest_files import (
    FileReadResult,
    FileVersion,
    ManifestListing,
    list_manifests,
    read_changed,
)

SOURCE: Final = "file"
POLL_SECONDS = 1.0
"""Between two looks at which files there are."""
RETRY_MISSING_SECONDS = 0.2
"""After which a file that was not there is looked for again: editors put files in place of others
in two steps, and who removes a manifest means its pods to end."""


MAX_INITIAL_POLLS = 5
"""For which the first delivery waits for files that change while they are read. Who hears of no pod
in it takes it for unwanted."""


class FileSource:
    """Delivers all pods of a folder, once at first and whenever they change.

    A file that is wrong keeps the pods that it had when it was right. A folder that does not exist
    has no pods; one that cannot be read keeps them.
    """

    def __init__(
        self,
        path: str | Path,
        node_name: str,
        deliver: Callable[[Iterable[Pod]], None],
        *,
        clock: Clock | None = None,
        period: float = 20.0,
        on_problem: OnProblem = ignore_problem,
        heartbeat: Callable[[], None] = lambda: None,
    ) -> None:
        self._path = str(path)
        self._origin = ManifestOrigin(source=SOURCE, location=self._path, node_name=node_name)
        self._deliver = deliver
        self._clock = clock or SystemClock()
        self._period = period
        self._heartbeat = heartbeat
        self._cache = ManifestCache(on_problem)
        self._path_problems = ManifestProblems(on_problem)
        """Of the folder itself, and of what is in it and no manifest."""
        self._versions: dict[str, FileVersion] = {}
        self._missing: frozenset[str] = frozenset()
        """What was there before the last look, and was not there then."""
        self._last_full_read: int | None = None
        self._polls = 0
        self._delivered: tuple[Pod, ...] | None = None

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            self._heartbeat()
            await self.poll_once()
            await self._clock.wait(RETRY_MISSING_SECONDS if self._missing else POLL_SECONDS)

    async def poll_once(self) -> None:
        """Look at the folder, read what has changed, and deliver if pods have."""
        now = self._clock.now()
        anew = (
            self._last_full_read is None or not 0 <= now - self._last_full_read < self._period * 1e9
        )
        # In a thread: a disk may be far away, and a large manifest takes its time.
        listing, readings = await run_in_daemon_thread(self._poll, Time.from_unix_nanos(now), anew)
        if anew:
            self._last_full_read = now
        self._apply(listing, readings)

    def _poll(self, now: Time, reread: bool) -> tuple[ManifestListing, dict[str, FileReadResult]]:  # noqa: FBT001 - for to_thread
        listing = list_manifests(self._path)
        return listing, read_changed(listing, self._versions, self._origin, now, reread=reread)

    def _apply(self, listing: ManifestListing, readings: dict[str, FileReadResult]) -> None:
        beside = {problem.location: problem for problem in listing.problems}
        for place in self._path_problems.locations() - beside.keys():
            self._path_problems.set_problems(place, ())
        for place, problem in beside.items():
            self._path_problems.set_problems(place, (problem,))
        if listing.state == "unreadable":
            return
        for place, reading in readings.items():
            self._apply_file(place, reading)
        # What is there but cannot be read keeps its pods.
        there = beside.keys() if listing.state == "there" else ()
        self._forget_missing(self._cache.locations() - listing.files.keys() - set(there))
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
        """Forget those that were missing the last time, too."""
        gone = missing & self._missing
        self._missing = missing - gone
        self._cache.forget(gone)
        for place in gone:
            self._versions.pop(place, None)

    def _deliver_changed(self) -> None:
        if self._missing:
            return  # a file may be on its way to another name, and is not to be there twice
        pods = self._cache.pods()
        if self._delivered is None or not _are_identical(pods, self._delivered):
            self._delivered = pods
            self._deliver(pods)


def _are_identical(left: tuple[Pod, ...], right: tuple[Pod, ...]) -> bool:
    return len(left) == len(right) and all(map(is_, left, right))
