"""Replay of checkpoint files with the product's own state (FORMAT.md, section 5).

`_without_container` is here because only recorded cases need it: it drops one container of a pod,
as v1.28 could. The product never does that: a pod's containers are removed with the pod.
"""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from podstatus.checkpoint.allocation_checkpoint import FileState, PodResourceState
from podstatus.checkpoint.errors import CheckpointError
from podstatus.checkpoint.formats import KUBELET_V1_28, KUBELET_V1_36
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.allocation import Allocations, PodResourceInfo, without_pods
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID


def replay_checkpoint(record: Mapping[str, Any]) -> object:
    """Return the results of opening, each operation, and opening again."""
    player = {"v1.36.4": _ResourceCheckpoint, "v1.28.0": _StatusManagerCheckpoint}[
        record["version"]
    ]
    with tempfile.TemporaryDirectory() as folder:
        return player(Path(folder), record["checkpointName"]).run(record)


class _CheckpointRunner(ABC):
    """Replays one record in a directory of its own."""

    format = KUBELET_V1_36

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.path = folder / name

    def run(self, record: Mapping[str, Any]) -> dict[str, Any]:
        if record.get("file") is not None:
            self.path.write_bytes(record["file"].encode())
        state = FileState(self.folder, format=self.format)
        opened = self._try(state, state.restore)
        if opened["error"] is not None:
            return {"open": opened | {"file": self._file()}}
        return {
            "open": opened | {"file": self._file()},
            "steps": [self._step(state, op) for op in record["ops"]],
            "reopen": self._reopen(),
        }

    def _step(self, state: FileState, op: Mapping[str, Any]) -> dict[str, Any]:
        return self._try(state, lambda: self.apply(state, op)) | {"file": self._file()}

    def _reopen(self) -> dict[str, Any]:
        reopened = FileState(self.folder, format=self.format)
        return self._try(reopened, reopened.restore)

    def _try(self, state: FileState, action: Callable[[], None]) -> dict[str, Any]:
        try:
            action()
        except CheckpointError as error:
            return {"error": str(error).replace(str(self.folder), "<DIR>")}
        return {"error": None, "state": self.state_document(state)}

    def _file(self) -> str | None:
        return self.path.read_text() if self.path.exists() else None

    @abstractmethod
    def state_document(self, state: FileState) -> object: ...

    @abstractmethod
    def apply(self, state: FileState, op: Mapping[str, Any]) -> None: ...


class _ResourceCheckpoint(_CheckpointRunner):
    """The allocated or actuated resources of v1.36."""

    def record(self, state: FileState) -> PodResourceState:
        return {"allocated_pods_state": state.allocated, "actuated_pods_state": state.actuated}[
            self.name
        ]

    def state_document(self, state: FileState) -> object:
        return self.record(state).pods()

    def apply(self, state: FileState, op: Mapping[str, Any]) -> None:
        match op["op"]:
            case "SetContainerResources":
                resources = _resources(op["resources"])
                self.record(state).set_container_resources(op["podUID"], op["container"], resources)
            case "SetPodResourceInfo":
                info = from_document(op["info"], PodResourceInfo)
                self.record(state).set_pod_resource_info(op["podUID"], info)
            case "SetPodLevelResources":
                whole = None if op["resources"] is None else _resources(op["resources"])
                self.record(state).set_pod_level_resources(op["podUID"], whole)
            case "RemovePod":
                state.remove_pod(op["podUID"])
            case "RemoveOrphanedPods":
                state.remove_orphaned_pods(op["podUIDs"])
            case unknown:
                raise LookupError(f"unknown operation {unknown} on checkpoints of v1.36")


class _StatusManagerCheckpoint(_CheckpointRunner):
    """The allocation and resize status of v1.28."""

    format = KUBELET_V1_28

    def state_document(self, state: FileState) -> object:
        allocations = state.allocations()
        return {
            "allocation": {uid: _amounts(info) for uid, info in allocations.allocated.items()},
            "resizeStatus": allocations.resize_statuses,
        }

    def apply(self, state: FileState, op: Mapping[str, Any]) -> None:
        match op["op"]:
            case "SetContainerResourceAllocation":
                requests = _requests(op["alloc"])
                state.allocated.set_container_resources(op["podUID"], op["container"], requests)
            case "SetPodResizeStatus":
                state.set_resize_status(op["podUID"], op["resizeStatus"])
            case "SetPodResourceAllocation":
                pods = _allocated(op["allocation"] or {})
                state.update(lambda old: structs.replace(old, allocated=pods))
            case "SetResizeStatus":
                statuses = op["statuses"] or {}
                state.update(lambda old: structs.replace(old, resize_statuses=statuses))
            case "Delete" if op["container"]:
                uid, container = PodUID(op["podUID"]), op["container"]
                state.update(lambda old: _without_container(old, uid, container))
            case "Delete":
                state.remove_pod(op["podUID"])
            case "ClearState":
                state.remove_orphaned_pods(())
            case unknown:
                raise LookupError(f"unknown operation {unknown} on checkpoints of v1.28")


def _resources(document: object) -> ResourceRequirements:
    return from_document(document, ResourceRequirements)


def _requests(amounts: object) -> ResourceRequirements:
    return _resources({"requests": amounts})


def _allocated(allocation: Mapping[str, Any]) -> dict[PodUID, PodResourceInfo]:
    return {
        PodUID(uid): PodResourceInfo(
            container_resources={name: _requests(c) for name, c in (containers or {}).items()}
        )
        for uid, containers in allocation.items()
    }


def _amounts(info: PodResourceInfo) -> dict[str, dict[str, str] | None]:
    return {
        name: None
        if resources.requests is None
        else {key: amount.canonical for key, amount in resources.requests.items()}
        for name, resources in info.container_resources.items()
    }


def _without_container(old: Allocations, uid: PodUID, container: str) -> Allocations:
    info = old.allocated.get(uid, PodResourceInfo())
    rest = {name: c for name, c in info.container_resources.items() if name != container}
    if rest:
        updated = structs.replace(info, container_resources=rest)
        return structs.replace(old, allocated={**old.allocated, uid: updated})
    return structs.replace(
        old,
        allocated=without_pods(old.allocated, {uid}),
        resize_statuses=without_pods(old.resize_statuses, {uid}),
    )
