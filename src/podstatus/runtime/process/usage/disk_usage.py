"""Disk usage of pods by container and volume, measured without blocking the caller."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import ContainerDiskUsage, DiskUsage, PodDiskUsage
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.shim.records import LOG
from podstatus.runtime.process.usage.tree_usage import MAX_ENTRIES, PartOf, split_tree_usage
from podstatus.runtime.process.volumes.memory_volumes import is_mount_point

MAX_POD_ENTRIES = 5 * MAX_ENTRIES
"""Of all parts of a pod together; about five seconds of work."""
MIN_AGE_SECONDS = 10.0
"""Period of the usage reading and of eviction."""
MAX_AGE_SECONDS = 60.0
"""Upstream: VolumeStatsAggPeriod, kubeletconfig defaults v1.36.4."""
MAX_REFRESH_SECONDS = 30.0
_POLL_SECONDS = 0.05
_MAX_LOAD = 0.005
"""Share of time spent on measuring one pod, unless that would make its usage too old."""
_ROOTFS, _LOGS, _RECORDS = "rootfs", "logs", "records"


class ContainerAttemptFolder(msgspec.Struct, frozen=True):
    """An attempt to run a container."""

    container: str
    id: str
    """Without the scheme."""


Attempts = Sequence[ContainerAttemptFolder]
"""All attempts of a pod, newest first."""
MeasurePod = Callable[[PodUID, Attempts], PodDiskUsage]


class DiskUsageCache:
    """The disk usage of pods: a small pod is measured every 10 s, a large one every minute.

    A daemon thread measures one pod at a time: a hanging disk blocks neither the event loop nor the
    exit of the process. Until it has measured a pod, its usage is unknown.
    """

    def __init__(self, measure: MeasurePod, *, clock: Clock) -> None:
        self._measure = measure
        self._clock = clock
        self._measured: dict[PodUID, _Measurement] = {}
        self._scan: _Scan | None = None

    def usage(self, pods: Mapping[PodUID, Attempts]) -> dict[PodUID, PodDiskUsage]:
        """Return what is known, and measure stale pods again; other pods are dropped."""
        self._collect()
        self._measured = {uid: entry for uid, entry in self._measured.items() if uid in pods}
        now = self._clock.monotonic()
        self._start_scan(pods, lambda entry: entry.is_stale(now))
        return {uid: entry.usage for uid, entry in self._measured.items()}

    async def refresh(self, pods: Mapping[PodUID, Attempts]) -> None:
        """Measure all these pods now; return when that is done, or takes too long."""
        since = self._clock.monotonic()
        deadline = since + round(MAX_REFRESH_SECONDS * 1e9)
        while self._clock.monotonic() < deadline:
            self._collect()
            self._start_scan(pods, lambda entry: entry.began < since)
            if self._scan is None:
                return
            await self._clock.wait(_POLL_SECONDS)

    def _start_scan(
        self, pods: Mapping[PodUID, Attempts], is_stale: "Callable[[_Measurement], bool]"
    ) -> None:
        stale = {
            uid: attempts
            for uid, attempts in pods.items()
            if (entry := self._measured.get(uid)) is None or is_stale(entry)
        }
        if stale and self._scan is None:
            self._scan = _Scan(stale, self._measure, self._clock)

    def _collect(self) -> None:
        if self._scan is not None and self._scan.done.is_set():
            self._measured |= self._scan.measured
            self._scan = None


class _Measurement(msgspec.Struct, frozen=True, kw_only=True):
    usage: PodDiskUsage
    began: int
    """Monotonic, in nanoseconds."""
    finished: int

    def is_stale(self, now: int) -> bool:
        seconds = (self.finished - self.began) / 1e9
        max_age = min(MAX_AGE_SECONDS, max(MIN_AGE_SECONDS, seconds / _MAX_LOAD))
        return now - self.finished >= max_age * 1e9


class _Scan:
    """One pass over some pods; `measured` may be read once `done` is set."""

    def __init__(self, pods: Mapping[PodUID, Attempts], measure: MeasurePod, clock: Clock) -> None:
        self.measured: dict[PodUID, _Measurement] = {}
        self.done = threading.Event()
        self._pods = pods
        self._measure = measure
        self._clock = clock
        threading.Thread(target=self._run, name="podstatus-folders", daemon=True).start()

    def _run(self) -> None:
        try:
            for uid, attempts in self._pods.items():
                began = self._clock.monotonic()
                usage = self._measure(uid, attempts)
                finished = self._clock.monotonic()
                self.measured[uid] = _Measurement(usage=usage, began=began, finished=finished)
        finally:
            self.done.set()


class PodMeter:
    """Measures the folders of pods. Blocks; call it in a thread."""

    def __init__(
        self,
        root: Path,
        outside_volumes: Callable[[PodUID], Mapping[str, Path]],
        *,
        now: Callable[[], int],
    ) -> None:
        """`outside_volumes` returns volumes outside of the pod's folder, by name."""
        self._root = root
        self._outside_volumes = outside_volumes
        self._now = now

    def measure(self, uid: PodUID, attempts: Attempts) -> PodDiskUsage:
        """Return the usage of a pod by container and volume."""
        folder, at, budget = PodFolder(self._root, uid), self._now(), _EntryBudget()
        records = budget.measure(folder.path, _record_part)
        by_attempt = [
            (attempt.container, budget.measure(folder.container(attempt.id).path, _attempt_part))
            for attempt in attempts
        ]
        folders = self._volume_folders(uid, folder)
        volumes = {
            name: sum_usage(budget.measure(path, _whole).values()) for name, path in folders.items()
        }
        on_disk = {
            name: usage for name, usage in volumes.items() if not is_mount_point(folders[name])
        }
        parts = (records, *(parts for _, parts in by_attempt))
        return PodDiskUsage(
            at=at,
            total=sum_usage(usage for part in (*parts, on_disk) for usage in part.values()),
            containers=_by_container(by_attempt),
            volumes=volumes,
        )

    def _volume_folders(self, uid: PodUID, folder: PodFolder) -> dict[str, Path]:
        try:
            inside = {path.name: path for path in folder.volumes.iterdir()}
        except OSError:
            inside = {}
        return inside | dict(self._outside_volumes(uid))


class _EntryBudget:
    """Limits the entries that are counted for one pod."""

    def __init__(self) -> None:
        self._remaining = MAX_POD_ENTRIES

    def measure(self, folder: Path, part_of: PartOf) -> dict[str, DiskUsage]:
        """Return the usage of a folder by part; empty if it is gone."""
        parts = split_tree_usage(folder, part_of, max_entries=min(MAX_ENTRIES, self._remaining))
        if parts is None:
            return {}
        self._remaining = max(0, self._remaining - sum(usage.inodes for usage in parts.values()))
        return parts


def sum_usage(usages: Iterable[DiskUsage]) -> DiskUsage:
    return sum(usages, DiskUsage())


def _by_container(
    attempts: Sequence[tuple[str, Mapping[str, DiskUsage]]],
) -> dict[str, ContainerDiskUsage]:
    """Return the usage by container, given that of its attempts, newest first."""
    containers: dict[str, ContainerDiskUsage] = {}
    for name, parts in attempts:
        logs = parts.get(_LOGS, DiskUsage())
        newer = containers.get(name)
        containers[name] = (
            ContainerDiskUsage(rootfs=parts.get(_ROOTFS, DiskUsage()), logs=logs)
            if newer is None
            else ContainerDiskUsage(rootfs=newer.rootfs, logs=newer.logs + logs)
        )
    return containers


def _record_part(name: str) -> str | None:
    """Of an entry in a pod's folder: containers and volumes are measured on their own."""
    return None if name in ("containers", "volumes") else _RECORDS


def _attempt_part(name: str) -> str:
    return _LOGS if name == LOG or name.startswith(f"{LOG}.") else _ROOTFS


def _whole(_: str) -> str:
    return ""
