"""One cgroup per container: its limits, its usage, its OOM kills.

    <root>/<name>/pod<uid>/<container id>/inside      in each hierarchy, versions 1 and 2

Limits are set on `<container id>`. Its processes are in `inside`, the root of their cgroup
namespace: whatever a container may mount there, its own limits are out of its reach.

`find_cgroups` says where that is possible. A container whose limits cannot be set runs
nevertheless, and the caller learns about it:

    LimitError            a requested limit is not in force
    CgroupInUseError      a cgroup could not be removed: a process in it cannot be killed
"""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path

import msgspec

from podstatus.kube.objects.cgroup_details import CgroupDetails, ProcessDetails
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.runtime_facts import ResourceFacts
from podstatus.runtime.cpu_and_memory_limits import CgroupLimits, container_limits, pod_limits
from podstatus.runtime.port import RuntimeDownError
from podstatus.runtime.process.cgroups.folders import PROCS, CgroupFolders
from podstatus.runtime.process.cgroups.model.details_files import (
    IO,
    LEAF,
    V1_IO_BYTES,
    DeviceName,
    read_cpu_details,
    read_devices,
    read_max_threads,
    read_memory_details,
)
from podstatus.runtime.process.cgroups.model.interface_files import (
    PRESSURE,
    CgroupSetting,
    CgroupUsage,
    CgroupVersion,
    ReadFile,
    oom_events_file,
    read_resource_facts,
    read_usage,
    settings_for,
)

_VALID_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_POD = "pod"
"""Prefix of a UID, as in the kubelet; it prevents clashes with interface files."""
_LEAF = "inside"
_MAX_ATTEMPTS, _RETRY_SECONDS = 100, 0.02
"""Killed processes are gone after a moment, unless they hang in the kernel."""


class CgroupPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Files of a container's cgroup that the shim uses."""

    procs: tuple[str, ...] = ()
    """Files to which a process writes its pid."""
    oom_events: str = ""
    """File with a line `oom_kill N`; empty for none."""


class LimitError(Exception):
    """A limit is not in force. The container may run nevertheless, in `paths`."""

    def __init__(self, reason: str, paths: CgroupPaths) -> None:
        super().__init__(reason)
        self.reason = reason
        self.paths = paths


class CgroupInUseError(RuntimeDownError):
    """A cgroup could not be removed, since a process in it did not end."""


class Cgroups:
    """The cgroups of one agent's containers. All state is in the kernel.

    Calls for different pods may overlap. Calls that remove may take two seconds: call them in a
    thread.
    """

    def __init__(
        self,
        version: CgroupVersion,
        bases: Mapping[str, Path],
        *,
        others: Collection[Path] = (),
        missing: Mapping[str, str],
        folders: CgroupFolders,
    ) -> None:
        self.version = version
        self._bases = dict(bases)
        """Parent cgroup of all pods, by controller; in version 2 the same for all."""
        self.hierarchies = tuple(dict.fromkeys((*bases.values(), *others)))
        """Including hierarchies without limits and accounting."""
        self.missing = dict(missing)
        """By controller, why it cannot be used."""
        self._folders = folders

    def create_pod(self, pod: Pod) -> None:
        """Create the cgroup of a pod with its limits. Raises LimitError.

        A failure to set only the sum of its containers' limits is no error.
        """
        limits = pod_limits(pod)
        own = pod.spec.resources.limits if pod.spec.resources else None
        requested = [name for name in limits.limited_resources if name in (own or {})]
        problems = self._create_with_limits(_relative_path(pod.uid), limits, container=False)
        _raise_if_unlimited(requested, problems, CgroupPaths())

    def create(
        self, pod_uid: PodUID, container_id: str, resources: ResourceRequirements
    ) -> CgroupPaths:
        """Create the cgroup of a container with its limits. Raises LimitError."""
        limits = container_limits(resources)
        path = _relative_path(pod_uid, container_id)
        problems = self._create_with_limits(path, limits, container=True)
        if path is not None:
            problems = self._create_leaf(path) | problems
        paths = CgroupPaths() if path is None else self._paths(path)
        _raise_if_unlimited(limits.limited_resources, problems, paths)
        return paths

    def actuated_resources(
        self, pod_uid: PodUID, container_id: str, requested: ResourceRequirements | None = None
    ) -> ResourceFacts | None:
        """Return the resources in force for a container; None if it has no cgroup.

        With `requested`, values that are in force are returned exactly as requested.
        """
        read = self.reader(pod_uid, container_id)
        limits = None if requested is None else container_limits(requested)
        return None if read is None else read_resource_facts(self.version, read, limits)

    def actuated_pod_resources(
        self, pod_uid: PodUID, requested: CgroupLimits | None = None
    ) -> ResourceFacts | None:
        """Return the resources in force for a pod as a whole; None if it has no cgroup."""
        read = self.reader(pod_uid)
        return None if read is None else read_resource_facts(self.version, read, requested)

    def usage(self, pod_uid: PodUID, *container_id: str) -> CgroupUsage | None:
        """Return the usage of a container, or of a pod, ended containers included.

        None if it has no cgroup.
        """
        read = self.reader(pod_uid, *container_id)
        return None if read is None else read_usage(self.version, read)

    def pods_usage(self) -> CgroupUsage | None:
        """Return the usage of all pods together, ended ones included; None without cgroups."""
        if not self.hierarchies:
            return None
        return read_usage(self.version, partial(self._read, Path()))

    def details(
        self, pod_uid: PodUID, *container_id: str, device_name: DeviceName, at: int
    ) -> CgroupDetails | None:
        """Return the details of a container or pod at this time; None if it has no cgroup.

        What is known of the processes themselves is missing.
        """
        path, read = _relative_path(pod_uid, *container_id), self.reader(pod_uid, *container_id)
        if path is None or read is None:
            return None
        return CgroupDetails(
            at=at,
            cgroup=f"/{self.hierarchies[0].name}/{path}",
            cpu=read_cpu_details(self.version, read),
            memory=read_memory_details(self.version, read),
            processes=ProcessDetails(max_threads=read_max_threads(read)),
            devices=read_devices(self.version, read, device_name),
        )

    def pids(self, pod_uid: PodUID, container_id: str) -> list[int] | None:
        """Return the processes of a container; None if it has no cgroup."""
        path = _relative_path(pod_uid, container_id)
        if path is None or not self.hierarchies:
            return None
        text = self._folders.read(f"{self.hierarchies[0]}/{path}/{_LEAF}/{PROCS}")
        return None if text is None else [int(pid) for pid in text.split()]

    def reader(self, pod_uid: PodUID, *container_id: str) -> ReadFile | None:
        """Return a reader of the interface files of a pod or container; None without a cgroup."""
        path = _relative_path(pod_uid, *container_id)
        if path is None or not any((base / path).is_dir() for base in self.hierarchies):
            return None
        return partial(self._read, path)

    def write(self, pod_uid: PodUID, *container_id: str, setting: CgroupSetting) -> None:
        """Write a setting of an existing cgroup. Raises OSError."""
        path = _relative_path(pod_uid, *container_id)
        base = self._bases.get(setting.controller)
        if path is not None and base is not None:
            self._folders.write(base / path / setting.file, setting.text)

    def kill(self, pod_uid: PodUID, container_id: str) -> None:
        """Kill all processes of a container; its cgroup stays. Raises CgroupInUseError."""
        path = _relative_path(pod_uid, container_id)
        if path is not None:
            for base in self.hierarchies:
                self._kill_folder(base / path)

    def remove(self, pod_uid: PodUID, container_id: str) -> None:
        """Kill all processes of a container and remove its cgroup. Raises CgroupInUseError."""
        self._remove(_relative_path(pod_uid, container_id))

    def remove_pod(self, pod_uid: PodUID) -> None:
        """Kill all processes of a pod and remove its cgroups. Raises CgroupInUseError."""
        self._remove(_relative_path(pod_uid))

    def retain_only(self, keep: Collection[PodUID]) -> None:
        """Remove the cgroups of all other pods. Raises CgroupInUseError.

        Call it before the first pod is started: a pod created meanwhile would be removed.
        """
        names = {name for base in self.hierarchies for name in self._folders.child_names(base)}
        errors = []
        for name in sorted(names - {f"{_POD}{uid}" for uid in keep}):
            try:
                self._remove(Path(name))
            except CgroupInUseError as error:
                errors.append(str(error))
        if errors:
            raise CgroupInUseError("; ".join(errors))

    def close(self) -> None:
        """Remove the parent cgroup of all pods, if it is empty."""
        for base in self.hierarchies:
            if not self._folders.child_names(base):
                self._folders.remove(base)

    def _create_with_limits(
        self, path: Path | None, limits: CgroupLimits, *, container: bool
    ) -> dict[str, str]:
        """Create a cgroup and set its limits; return the errors by controller."""
        if path is None:
            return dict.fromkeys(limits.limited_resources, "its ID is not a valid cgroup name")
        errors = self.missing | self._create_in_hierarchies(path)
        for setting in settings_for(self.version, limits, container=container):
            if setting.controller not in errors and (error := self._apply_setting(path, setting)):
                errors[setting.controller] = error
        return errors

    def _create_in_hierarchies(self, path: Path) -> dict[str, str]:
        errors: dict[str, str] = {}
        for base in self.hierarchies:
            try:
                self._create_path(base, path)
            except OSError as error:
                message = f"cannot create a cgroup in {base}: {error.strerror}"
                errors |= dict.fromkeys(self._controllers(base), message)
        return errors

    def _create_leaf(self, path: Path) -> dict[str, str]:
        errors: dict[str, str] = {}
        for base in self.hierarchies:
            try:
                self._folders.create(base / path / _LEAF)
            except OSError as error:
                errors |= dict.fromkeys(self._controllers(base), str(error.strerror))
        return errors

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
                return f"{setting.file} cannot be set to {setting.text}: {error.strerror}"
        return None

    def _paths(self, path: Path) -> CgroupPaths:
        leaf = path / _LEAF
        leaves = [base / leaf for base in self.hierarchies if (base / leaf).is_dir()]
        # Version 1 counts OOM kills in the process's own cgroup, version 2 also in its parents.
        counted = leaf if self.version is CgroupVersion.V1 else path
        memory = self._bases.get("memory")
        events = None if memory is None else memory / counted / oom_events_file(self.version)
        return CgroupPaths(
            procs=tuple(str(folder / PROCS) for folder in leaves),
            oom_events=str(events) if events is not None and events.is_file() else "",
        )

    def _read(self, path: Path, controller: str, file: str) -> str | None:
        if controller == PRESSURE:
            base = self._unified
        elif controller == IO:
            base = self._io
        elif controller == LEAF:
            base, path = self._bases.get("memory"), path / _LEAF
        elif self.version is CgroupVersion.V2:
            # Version 2 counts CPU time even without the cpu controller.
            base = self._bases.get(controller) or next(iter(self.hierarchies), None)
        else:
            base = self._bases.get(controller)
        # Text, since joining paths takes longer than reading the file.
        return None if base is None else self._folders.read(f"{base}/{path}/{file}")

    @cached_property
    def _unified(self) -> Path | None:
        """The hierarchy of version 2; with version 1, it may be mounted without controllers."""
        for base in self.hierarchies:
            if (base / "cgroup.controllers").is_file():
                return base
        return None

    @cached_property
    def _io(self) -> Path | None:
        """The hierarchy that counts I/O; in version 1 one without limits of ours."""
        if self.version is CgroupVersion.V2:
            return next(iter(self.hierarchies), None)
        for base in self.hierarchies:
            if (base / V1_IO_BYTES).is_file():
                return base
        return None

    def _kill_folder(self, folder: Path) -> None:
        for _ in self._retries():
            folders = self._folders.subtree(folder)
            if not (pids := [pid for path in folders for pid in self._folders.pids(path)]):
                return
            self._folders.kill(folder)
        raise CgroupInUseError(f"processes {pids} in cgroup {folder} do not end")

    def _remove(self, path: Path | None) -> None:
        if path is not None:
            for base in self.hierarchies:
                self._remove_folder(base / path)

    def _remove_folder(self, folder: Path) -> None:
        for _ in self._retries():
            try:
                for path in self._folders.subtree(folder):
                    self._folders.remove(path)
            except OSError as error:
                reason = error.strerror
                self._folders.kill(folder)
            else:
                return
        raise CgroupInUseError(
            f"cannot remove cgroup {folder}: {reason}; "
            f"it contains processes {self._folders.pids(folder)}"
        )

    def _retries(self) -> Iterator[None]:
        for number in range(_MAX_ATTEMPTS):
            if number:
                self._folders.sleep(_RETRY_SECONDS)
            yield


def unavailable_cgroups(reason: str) -> Cgroups:
    """Return cgroups that limit nothing; every requested limit fails with `reason`."""
    missing = dict.fromkeys(("cpu", "memory"), reason)
    return Cgroups(CgroupVersion.V2, {}, missing=missing, folders=CgroupFolders())


def enable_controllers(folders: CgroupFolders, folder: Path, controllers: Collection[str]) -> None:
    """Version 2: enable controllers for the children of a cgroup. Raises OSError."""
    enabled = (folders.read(folder / "cgroup.subtree_control") or "").split()
    for controller in controllers:
        if controller not in enabled:
            folders.write(folder / "cgroup.subtree_control", f"+{controller}")


def is_valid_name(text: str) -> bool:
    """Return whether the text is a valid cgroup name: one path component, not a dot file."""
    return _VALID_NAME.fullmatch(text) is not None


def _relative_path(pod_uid: PodUID, *container_id: str) -> Path | None:
    """Return the path of a cgroup; None for unsafe names, as a manifest may contain any UID."""
    parts = (f"{_POD}{pod_uid}", *container_id)
    return Path(*parts) if all(map(is_valid_name, parts)) else None


def _raise_if_unlimited(
    requested: Collection[str], problems: Mapping[str, str], paths: CgroupPaths
) -> None:
    unlimited = [
        f"{name} is not limited: {problems[name]}" for name in requested if name in problems
    ]
    if unlimited:
        raise LimitError("; ".join(unlimited), paths)
