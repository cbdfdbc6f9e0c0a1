"""A cgroup for each container: what it may use, what it uses, and who was killed for memory.

    <root>/<name>/pod<uid>/<container id>/inside      in each hierarchy, of version 1 and of 2

Limits are set on `<container id>`. Its processes are in `inside`, which is the root of their
cgroup namespace: whatever a container may mount there, its own limits are out of its reach.

`find_cgroups` says where that is possible. What cannot be limited runs all the same, and whoever
started it is told:

    CannotLimitError      a limit that was asked for does not hold
    CgroupInUseError      a cgroup could not be removed: something in it cannot be killed
"""

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.runtime_facts import ResourceFacts
from podstatus.runtime.process.cgroups.folders import PROCS, CgroupFolders
from podstatus.runtime.process.cgroups.model.interface_files import (
    CgroupSetting,
    CgroupUsage,
    CgroupVersion,
    ReadFile,
    oom_events_file,
    read_resource_facts,
    read_usage,
    settings_for,
)
from podstatus.runtime.resource_limits import CgroupLimits, container_limits, pod_limits

_VALID_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_POD = "pod"
"""In front of a UID, as the kubelet has it: so it cannot have the name of a kernel's file."""
_LEAF = "inside"
_MAX_ATTEMPTS, _RETRY_SECONDS = 100, 0.02
"""What is killed is gone after a moment, if it does not hang in the kernel."""


class CgroupPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Where a container's processes go."""

    procs: tuple[str, ...] = ()
    """The files that a process writes its pid to."""
    oom_events: str = ""
    """The file with a line `oom_kill N`; empty for none."""


class LimitError(Exception):
    """A limit does not hold. The container may run all the same, in what there is."""

    def __init__(self, reason: str, paths: CgroupPaths) -> None:
        super().__init__(reason)
        self.reason = reason
        self.paths = paths


class CgroupInUseError(Exception):
    """A cgroup is still there, since something in it did not end."""


class Cgroups:
    """Those of the containers of one agent. Nothing of it is remembered but in the kernel.

    Calls about different pods may overlap. Those that remove may take two seconds: call them in
    a thread.
    """

    def __init__(
        self,
        version: CgroupVersion,
        bases: Mapping[str, Path],
        *,
        others: Collection[Path] = (),
        missing: Mapping[str, str],
        folders: CgroupFolders,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.version = version
        self._bases = dict(bases)
        """By controller, the cgroup that all pods are in; in version 2 the same for all."""
        self._hierarchies = tuple(dict.fromkeys((*bases.values(), *others)))
        """With those in which nothing is limited or counted."""
        self._missing = dict(missing)
        """Why there is none, by controller."""
        self._folders = folders
        self._sleep = sleep

    @property
    def missing(self) -> Mapping[str, str]:
        """What cannot be limited at all, by controller, and why."""
        return self._missing

    def create_pod(self, pod: Pod) -> None:
        """Make the cgroup of a pod, and have its limits hold. Raises CannotLimitError.

        It is no error if only the sum of its containers' limits cannot be set.
        """
        limits = pod_limits(pod)
        own = pod.spec.resources.limits if pod.spec.resources else None
        asked = [name for name in limits.limited_resources if name in (own or {})]
        problems = self._create_with_limits(_relative_path(pod.uid), limits, container=False)
        _raise_if_unlimited(asked, problems, CgroupPaths())

    def create(
        self, pod_uid: PodUID, container_id: str, resources: ResourceRequirements
    ) -> CgroupPaths:
        """Make the cgroup of a container, and have its limits hold. Raises CannotLimitError."""
        limits = container_limits(resources)
        path = _relative_path(pod_uid, container_id)
        problems = self._create_with_limits(path, limits, container=True)
        if path is not None:
            problems = self._create_leaf(path) | problems
        place = CgroupPaths() if path is None else self._paths(path)
        _raise_if_unlimited(limits.limited_resources, problems, place)
        return place

    def actuated_resources(
        self, pod_uid: PodUID, container_id: str, requested: ResourceRequirements | None = None
    ) -> ResourceFacts | None:
        """What holds for a container now; None if it has no cgroup.

        Who says what was asked for hears it again exactly, as long as it holds.
        """
        read = self.reader(pod_uid, container_id)
        wanted = None if requested is None else container_limits(requested)
        return None if read is None else read_resource_facts(self.version, read, wanted)

    def actuated_pod_resources(
        self, pod_uid: PodUID, requested: CgroupLimits | None = None
    ) -> ResourceFacts | None:
        """What holds for a pod as a whole now; None if it has no cgroup."""
        read = self.reader(pod_uid)
        return None if read is None else read_resource_facts(self.version, read, requested)

    def usage(self, pod_uid: PodUID, container_id: str) -> CgroupUsage | None:
        """What a container uses; None if it has no cgroup."""
        read = self.reader(pod_uid, container_id)
        return None if read is None else read_usage(self.version, read)

    def pod_usage(self, pod_uid: PodUID) -> CgroupUsage | None:
        """What all of a pod uses, and has used since it was made; None if it has no cgroup."""
        read = self.reader(pod_uid)
        return None if read is None else read_usage(self.version, read)

    def reader(self, pod_uid: PodUID, *container_id: str) -> ReadFile | None:
        """Reads the files of a cgroup, that of the pod or of a container; None if it has none."""
        path = _relative_path(pod_uid, *container_id)
        if path is None or not any((base / path).is_dir() for base in self._hierarchies):
            return None
        return partial(self._read, path)

    def write(self, pod_uid: PodUID, *container_id: str, setting: CgroupSetting) -> None:
        """Set something of a cgroup that is there. Raises OSError."""
        path = _relative_path(pod_uid, *container_id)
        base = self._bases.get(setting.controller)
        if path is not None and base is not None:
            self._folders.write(base / path / setting.file, setting.text)

    def kill(self, pod_uid: PodUID, container_id: str) -> None:
        """End what is left in it; it stays. Raises CgroupInUseError."""
        path = _relative_path(pod_uid, container_id)
        if path is not None:
            for base in self._hierarchies:
                self._kill_folder(base / path)

    def remove(self, pod_uid: PodUID, container_id: str) -> None:
        """End what is left in it, and remove it. Raises CgroupInUseError."""
        self._remove(_relative_path(pod_uid, container_id))

    def remove_pod(self, pod_uid: PodUID) -> None:
        """The same for all of a pod. Raises CgroupInUseError."""
        self._remove(_relative_path(pod_uid))

    def retain_only(self, keep: Collection[PodUID]) -> None:
        """Remove all of pods that nobody knows any more. Raises CgroupInUseError.

        For before the first pod is started: one that is made meanwhile is not kept.
        """
        found = {name for base in self._hierarchies for name in self._folders.child_names(base)}
        stuck = []
        for name in sorted(found - {f"{_POD}{uid}" for uid in keep}):
            try:
                self._remove(Path(name))
            except CgroupInUseError as error:
                stuck.append(str(error))
        if stuck:
            raise CgroupInUseError("; ".join(stuck))

    def close(self) -> None:
        """Let go of the cgroup of all pods, if there are none."""
        for base in self._hierarchies:
            if not self._folders.child_names(base):
                self._folders.remove(base)

    def _create_with_limits(
        self, path: Path | None, limits: CgroupLimits, *, container: bool
    ) -> dict[str, str]:
        """Make it and set it; what could not be done, by controller."""
        if path is None:
            return dict.fromkeys(limits.limited_resources, "its ID is no name for a cgroup")
        problems = self._missing | self._create_in_hierarchies(path)
        for setting in settings_for(self.version, limits, container=container):
            if setting.controller not in problems and (why := self._apply_setting(path, setting)):
                problems[setting.controller] = why
        return problems

    def _create_in_hierarchies(self, path: Path) -> dict[str, str]:
        problems: dict[str, str] = {}
        for base in self._hierarchies:
            try:
                self._create_path(base, path)
            except OSError as error:
                why = f"no cgroup in {base}: {error.strerror}"
                problems |= dict.fromkeys(self._controllers(base), why)
        return problems

    def _create_leaf(self, path: Path) -> dict[str, str]:
        problems: dict[str, str] = {}
        for base in self._hierarchies:
            try:
                self._folders.create(base / path / _LEAF)
            except OSError as error:
                problems |= dict.fromkeys(self._controllers(base), str(error.strerror))
        return problems

    def _controllers(self, base: Path) -> list[str]:
        return [name for name, folder in self._bases.items() if folder == base]

    def _create_path(self, base: Path, path: Path) -> None:
        folder = base
        self._folders.create(folder)
        for part in path.parts:
            if self.version is CgroupVersion.V2 and base in self._bases.values():
                enable_controllers(self._folders, folder, self._bases)
            folder /= part
            self._folders.create(folder)

    def _apply_setting(self, path: Path, setting: CgroupSetting) -> str | None:
        try:
            self._folders.write(self._bases[setting.controller] / path / setting.file, setting.text)
        except OSError as error:
            if setting.required:
                return f"{setting.file} cannot be {setting.text}: {error.strerror}"
        return None

    def _paths(self, path: Path) -> CgroupPaths:
        inside = path / _LEAF
        made = [base / inside for base in self._hierarchies if (base / inside).is_dir()]
        # Version 1 counts where the process was that is killed, version 2 also above.
        counted = inside if self.version is CgroupVersion.V1 else path
        memory = self._bases.get("memory")
        events = None if memory is None else memory / counted / oom_events_file(self.version)
        return CgroupPaths(
            procs=tuple(str(folder / PROCS) for folder in made),
            oom_events=str(events) if events is not None and events.is_file() else "",
        )

    def _read(self, path: Path, controller: str, file: str) -> str | None:
        # Version 2 counts processor time whether it limits it or not.
        others = self._hierarchies if self.version is CgroupVersion.V2 else ()
        base = self._bases.get(controller) or next(iter(others), None)
        return None if base is None else self._folders.read(base / path / file)

    def _kill_folder(self, folder: Path) -> None:
        for _ in self._retries():
            below = self._folders.subtree(folder)
            if not (pids := [pid for path in below for pid in self._folders.pids(path)]):
                return
            self._folders.kill(folder)
        raise CgroupInUseError(f"in cgroup {folder} the processes {pids} do not end")

    def _remove(self, path: Path | None) -> None:
        if path is not None:
            for base in self._hierarchies:
                self._remove_folder(base / path)

    def _remove_folder(self, folder: Path) -> None:
        for _ in self._retries():
            try:
                for path in self._folders.subtree(folder):
                    self._folders.remove(path)
            except OSError as error:
                why = error.strerror
                self._folders.kill(folder)
            else:
                return
        raise CgroupInUseError(
            f"cgroup {folder} cannot be removed: {why}; "
            f"in it are the processes {self._folders.pids(folder)}"
        )

    def _retries(self) -> Iterator[None]:
        for number in range(_MAX_ATTEMPTS):
            if number:
                self._sleep(_RETRY_SECONDS)
            yield


def unavailable_cgroups(reason: str) -> Cgroups:
    """For where there are none: no limit holds, and why is said of each that is asked for."""
    missing = dict.fromkeys(("cpu", "memory"), reason)
    return Cgroups(CgroupVersion.V2, {}, missing=missing, folders=CgroupFolders())


def enable_controllers(folders: CgroupFolders, folder: Path, controllers: Collection[str]) -> None:
    """Have what is made in a cgroup of version 2 be limited by these. Raises OSError."""
    on = (folders.read(folder / "cgroup.subtree_control") or "").split()
    for controller in controllers:
        if controller not in on:
            folders.write(folder / "cgroup.subtree_control", f"+{controller}")


def is_valid_name(text: str) -> bool:
    """Whether a cgroup can be called this, in a folder of its own and nowhere else."""
    return _VALID_NAME.fullmatch(text) is not None


def _relative_path(pod_uid: PodUID, *container_id: str) -> Path | None:
    """None for names that lead elsewhere: a manifest may bring a UID of its own."""
    parts = (f"{_POD}{pod_uid}", *container_id)
    return Path(*parts) if all(map(is_valid_name, parts)) else None


def _raise_if_unlimited(
    requested: Collection[str], problems: Mapping[str, str], paths: CgroupPaths
) -> None:
    why = [f"{name} is not limited: {problems[name]}" for name in requested if name in problems]
    if why:
        raise LimitError("; ".join(why), paths)
