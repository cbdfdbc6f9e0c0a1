"""Reads what only cAdvisor's metrics need: expensive, so only when these are requested."""

import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from msgspec import structs

from podstatus.kube.objects.cgroup_details import CgroupDetails, PodDetails, ProcessDetails
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups
from podstatus.runtime.process.usage.collector import RunningContainers

_MAX_DESCRIPTORS = 50_000
"""Of all containers together: about a quarter of a second of work."""
_MAX_CONTAINER_DESCRIPTORS = 10_000
_SOCKET = "socket:"
_OPEN_FILES = "Max open files"
_UNLIMITED = -1


class DetailsReader:
    """Reads the details of all pods at once. Blocks; may be called in any thread."""

    def __init__(self, cgroups: Cgroups, *, now: Callable[[], int]) -> None:
        self._cgroups = cgroups
        self._now = now

    def read(self, pods: RunningContainers) -> dict[PodUID, PodDetails]:
        """Return the details of these pods; pods without a cgroup are missing."""
        counter = _DescriptorCounter()
        details = {}
        for uid, containers in pods.items():
            pod = self._details(uid)
            if pod is None:
                continue
            named = {
                name: self._container_details(uid, running.id, counter)
                for name, running in containers.items()
            }
            details[uid] = PodDetails(
                pod=pod, containers={name: it for name, it in named.items() if it is not None}
            )
        return details

    def _details(self, *path: str) -> CgroupDetails | None:
        uid, *container = path
        return self._cgroups.details(
            PodUID(uid), *container, device_name=device_name, at=self._now()
        )

    def _container_details(
        self, uid: PodUID, id: str, counter: "_DescriptorCounter"
    ) -> CgroupDetails | None:
        details, pids = self._details(uid, id), self._cgroups.pids(uid, id)
        if details is None or pids is None:
            return details
        counted = counter.count(pids)
        processes = structs.replace(
            details.processes,
            file_descriptors=counted.file_descriptors,
            sockets=counted.sockets,
            max_open_files=_max_open_files(pids[0]) if pids else None,
        )
        return structs.replace(details, processes=processes)


class _DescriptorCounter:
    """Counts open file descriptors, up to a limit."""

    def __init__(self) -> None:
        self._remaining = _MAX_DESCRIPTORS

    def count(self, pids: list[int]) -> ProcessDetails:
        """Return the descriptors of these processes; unknown if there are too many."""
        allowed = min(self._remaining, _MAX_CONTAINER_DESCRIPTORS)
        descriptors = sockets = 0
        for pid in pids:
            folder = f"/proc/{pid}/fd"
            try:
                names = os.listdir(folder)  # noqa: PTH208 - thousands of Path objects
            except OSError:
                continue  # the process has ended
            descriptors += len(names)
            if descriptors > allowed:
                self._remaining -= allowed
                return ProcessDetails()
            sockets += sum(_link(f"{folder}/{name}").startswith(_SOCKET) for name in names)
        self._remaining -= descriptors
        return ProcessDetails(file_descriptors=descriptors, sockets=sockets)


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - thousands of Path objects
    except OSError:
        return ""


def _max_open_files(pid: int) -> int | None:
    """Return the soft limit of open files of a process."""
    try:
        lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(_OPEN_FILES):
            soft, *_ = line.removeprefix(_OPEN_FILES).split()
            return _UNLIMITED if soft == "unlimited" else int(soft)
    return None


@lru_cache(maxsize=256)
def device_name(major: int, minor: int) -> str:
    """Return the path of a block device; empty if it does not exist."""
    link = _link(f"/sys/dev/block/{major}:{minor}")
    return f"/dev/{link.rpartition('/')[2]}" if link else ""
