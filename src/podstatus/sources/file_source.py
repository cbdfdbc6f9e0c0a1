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
from podstatus.sources.manifest.static_pods import Origin
from podstatus.sources.manifest_cache import ManifestMemory, OnProblem, ProblemBook, ignore_problem
from podstatus.sources.manifest_files import (
    Known,
    Listing,
    Reading,
    list_manifests,
    read_changed,
)

SOURCE: Final = "file"
LOOK_SECONDS = 1.0
"""Between two looks at which files there are."""
MOMENT_SECONDS = 0.2
"""After which a file that was not there is looked for again: editors put files in place of others
in two steps, and who removes a manifest means its pods to end."""


FIRST_LOOKS = 5
"""For which the first delivery waits for files that change while they are read. Who hears of no pod
in it takes it for unwanted."""


class FolderSource:
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
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        self._path = str(path)
        self._origin = Origin(source=SOURCE, place=self._path, node_name=node_name)
        self._deliver = deliver
        self._clock = clock or SystemClock()
        self._period = period
        self._beat = beat
        self._memory = ManifestMemory(on_problem)
        self._beside = ProblemBook(on_problem)
        """Of the folder itself, and of what is in it and no manifest."""
        self._known: dict[str, Known] = {}
        self._missed: frozenset[str] = frozenset()
        """What was there before the last look, and was not there then."""
        self._read_all: int | None = None
        self._looks = 0
        self._delivered: tuple[Pod, ...] | None = None

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            self._beat()
            await self.look_once()
            await self._clock.wait(MOMENT_SECONDS if self._missed else LOOK_SECONDS)

    async def look_once(self) -> None:
        """Look at the folder, read what has changed, and deliver if pods have."""
        now = self._clock.now()
        anew = self._read_all is None or not 0 <= now - self._read_all < self._period * 1e9
        # In a thread: a disk may be far away, and a large manifest takes its time.
        listing, readings = await run_in_daemon_thread(self._look, Time.from_unix_nanos(now), anew)
        if anew:
            self._read_all = now
        self._take(listing, readings)

    def _look(self, now: Time, anew: bool) -> tuple[Listing, dict[str, Reading]]:  # noqa: FBT001 - for to_thread
        listing = list_manifests(self._path)
        return listing, read_changed(listing, self._known, self._origin, now, anew=anew)

    def _take(self, listing: Listing, readings: dict[str, Reading]) -> None:
        beside = {problem.place: problem for problem in listing.problems}
        for place in self._beside.places() - beside.keys():
            self._beside.put(place, ())
        for place, problem in beside.items():
            self._beside.put(place, (problem,))
        if listing.state == "unreadable":
            return
        for place, reading in readings.items():
            self._take_file(place, reading)
        # What is there but cannot be read keeps its pods.
        there = beside.keys() if listing.state == "there" else ()
        self._forget_missing(self._memory.places() - listing.files.keys() - set(there))
        self._looks += 1
        if self._looks >= FIRST_LOOKS or listing.files.keys() <= self._memory.places():
            self._deliver_changed()

    def _take_file(self, place: str, reading: Reading) -> None:
        if reading.known is None:
            self._known.pop(place, None)
        else:
            self._known[place] = reading.known
        if reading.manifest is not None:
            self._memory.take(place, reading.manifest)

    def _forget_missing(self, missing: frozenset[str]) -> None:
        """Forget those that were missing the last time, too."""
        gone = missing & self._missed
        self._missed = missing - gone
        self._memory.forget(gone)
        for place in gone:
            self._known.pop(place, None)

    def _deliver_changed(self) -> None:
        if self._missed:
            return  # a file may be on its way to another name, and is not to be there twice
        pods = self._memory.pods()
        if self._delivered is None or not _are_same(pods, self._delivered):
            self._delivered = pods
            self._deliver(pods)


def _are_same(left: tuple[Pod, ...], right: tuple[Pod, ...]) -> bool:
    return len(left) == len(right) and all(map(is_, left, right))
