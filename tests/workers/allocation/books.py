"""Stores of allocated and actuated resources that record, block or fail."""

import threading
from collections.abc import Mapping

from podstatus.checkpoint.allocation_checkpoint import MemoryState
from podstatus.kube.objects.allocation import PodResourceInfo
from podstatus.kube.objects.pod import PodUID
from podstatus.workers.allocation.allocations import ResourceInfoStore


class Book:
    """Records writes; fails when it is full."""

    def __init__(self, name: str, book: ResourceInfoStore, written: list[str]) -> None:
        self._name, self._book, self._written = name, book, written
        self.is_full = False
        self.fails = 0
        """How often to, of some pods at once."""
        self.writes = 0
        """Of some pods at once."""
        self.may_write, self.is_writing = threading.Event(), threading.Event()
        self.may_write.set()

    def pod_resource_info(self, uid: str) -> PodResourceInfo | None:
        return self._book.pod_resource_info(uid)

    def set_pod_resource_info(self, uid: str, info: PodResourceInfo) -> None:
        if self.is_full:
            raise OSError("no space left")
        self._book.set_pod_resource_info(uid, info)
        requests = next(iter(info.container_resources.values())).requests or {}
        self._written.append(f"{self._name}={requests['cpu']}")

    def set_pod_resource_infos(self, infos: Mapping[PodUID, PodResourceInfo]) -> None:
        self.writes += 1
        if not self.may_write.is_set():
            self.is_writing.set()
            assert self.may_write.wait(60)
        if self.is_full or self.writes <= self.fails:
            raise OSError("no space left")
        for uid, info in infos.items():
            self.set_pod_resource_info(uid, info)


class Books:
    def __init__(self) -> None:
        state = MemoryState()
        self.written: list[str] = []
        self.allocated = Book("allocated", state.allocated, self.written)
        self.actuated = Book("actuated", state.actuated, self.written)
