"""Controllers retry failed writes once the disk has space again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podstatus.apiserver.controllers.base import Controller
from podstatus.apiserver.controllers.namespaces import NamespaceController
from podstatus.apiserver.controllers.node_lifecycle import NodeLifecycleController
from podstatus.apiserver.controllers.scheduler import Scheduler
from podstatus.apiserver.generic_registry import Registry
from podstatus.apiserver.storage.store import StorageError, StorageKey, Store
from podstatus.apiserver.strategies.base import Document
from podstatus.apiserver.strategies.by_resource import STRATEGIES
from podstatus.kube.objects.cluster import DeleteOptions
from podstatus.testing.clock import FakeClock, run_ready_tasks
from tests.apiserver.controllers.documents import node
from tests.apiserver.targets import NAMESPACES, PODS, pod, target
from tests.support.loops import in_background

FULL = "cannot write to the database: disk is full"


class FullStore(Store):
    """A store in memory whose writes fail while `full` is set."""

    is_full = False

    def _write(self, version: int, *statements: tuple[str, tuple[Any, ...]]) -> None:
        if self.is_full:
            raise StorageError(FULL)
        super()._write(version, *statements)


class Rig:
    """A store with a namespace, and the controllers."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = FullStore(None, lambda _, __: {})
        self.registry = Registry(self.store, STRATEGIES, self.clock)
        name = {"metadata": {"name": "default"}}
        self.registry.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace"} | name)

    @asynccontextmanager
    async def served_by(self, controller: Controller) -> AsyncIterator[None]:
        self.store.listener = controller.on_change
        async with in_background(controller.run()):
            await run_ready_tasks()
            yield

    def stored(self, resource: str, name: str, namespace: str = "") -> Document | None:
        stored = self.store.get(resource, StorageKey(namespace, name))
        return None if stored is None else stored.document()

    def create_node(self) -> None:
        document = {"apiVersion": "v1", "kind": "Node"} | node()
        self.registry.create(target("/api/v1/nodes"), document)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname != "DEBUG"]


async def test_a_pod_is_bound_once_that_can_be_written(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        rig = Rig()
        rig.create_node()
        async with rig.served_by(Scheduler(rig.store, rig.registry, rig.clock)):
            rig.registry.create(PODS, pod(node=""))
            rig.store.is_full = True
            await rig.clock.advance(10)
            rig.store.is_full = False
            await rig.clock.advance(1)
        bound = rig.stored("pods", "a", "default")
        assert bound is not None
        assert bound["spec"]["nodeName"] == "n1"
    assert lines(caplog) == [
        f"binding pods failed, will retry: error={FULL}",
        "pod bound: pod=default/a node=n1",
        "binding pods works again",
    ]


async def test_that_a_pod_fits_nowhere_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", logger="podstatus")
    rig = Rig()
    rig.create_node()
    async with rig.served_by(Scheduler(rig.store, rig.registry, rig.clock)):
        waiting = pod(node="")
        waiting["spec"]["nodeSelector"] = {"disk": "none"}
        rig.registry.create(PODS, waiting)
        rig.store.is_full = True
        await rig.clock.advance(10)
        rig.store.is_full = False
        await rig.clock.advance(10)
    (event,) = rig.store.objects("events")
    assert event.document()["reason"] == "FailedScheduling"
    assert event.document().get("series") is None
    assert len(lines(caplog)) == 1


async def test_a_namespace_goes_once_that_can_be_written(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        rig = Rig()
        cleaner = NamespaceController(rig.store, rig.registry, rig.clock)
        async with rig.served_by(cleaner):
            name = {"metadata": {"name": "x"}}
            rig.registry.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace"} | name)
            rig.registry.delete(target("/api/v1/namespaces/x"), DeleteOptions())
            rig.store.is_full = True
            await rig.clock.advance(10)
            assert rig.stored("namespaces", "x") is not None
            rig.store.is_full = False
            await rig.clock.advance(1)
            assert rig.stored("namespaces", "x") is None
    assert lines(caplog) == [
        (
            "deleting the content of namespaces failed, will retry: "
            "error=cannot write to the database: disk is full"
        ),
        "namespace removed: namespace=x",
        "deleting the content of namespaces works again",
    ]


async def test_a_taint_goes_once_that_can_be_written(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        rig = Rig()
        rig.create_node()
        rig.store.is_full = True
        controller = NodeLifecycleController(rig.store, rig.registry, rig.clock)
        async with rig.served_by(controller):
            await rig.clock.advance(10)
            rig.store.is_full = False
            await rig.clock.advance(1)
        ready = rig.stored("nodes", "n1")
        assert ready is not None
        assert "taints" not in ready["spec"]
    assert lines(caplog) == [
        f"updating the taints of nodes failed, will retry: error={FULL}",
        "updating the taints of nodes works again",
    ]
