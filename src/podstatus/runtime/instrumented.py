"""A runtime wrapper that counts operations and measures how long they take.

    runtime = instrument(runtime, observer, clock)

The wrapper offers exactly the optional protocols of the runtime it wraps, so that checks such as
`isinstance(runtime, PodStats)` give the same answer before and after.

Upstream: instrumentedRuntimeService, pkg/kubelet/kuberuntime/instrumented_services.go v1.36.4; the
operation names are upstream's.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import (
    ContainerStats,
    DescribesImages,
    DetailedStats,
    DiskStats,
    NodeLabels,
    PodStats,
    ReportsProbes,
    ResizesPods,
    RunsHooks,
    Runtime,
    RuntimePod,
    SystemStats,
)
from podstatus.runtime.streams import Logs, RunsCommands, Streaming

RUN_POD = "run_podsandbox"
_LIST_PODS, _POD_STATUS = "list_podsandbox", "podsandbox_status"
_OPERATIONS = {
    "start_pod": RUN_POD,
    "start_container": "start_container",
    "stop_container": "stop_container",
    "remove_container": "remove_container",
    "stop_pod": "stop_podsandbox",
    "remove_pod": "remove_podsandbox",
    "usage": "list_podsandbox_stats",
    "resize_pod": "update_podsandbox_resources",
    "exec_sync": "exec_sync",
    "exec": "exec",
    "attach": "attach",
}
"""Measured coroutine methods, and the operations they count as; `list_pods` counts as two."""
_OPTIONAL_PROTOCOLS = (
    PodStats,
    ContainerStats,
    DiskStats,
    DetailedStats,
    SystemStats,
    ResizesPods,
    NodeLabels,
    DescribesImages,
    RunsHooks,
    ReportsProbes,
    Logs,
    RunsCommands,
    Streaming,
)


class OperationObserver(Protocol):
    """Receives every runtime operation. Must not block."""

    def runtime_operation(self, operation: str, seconds: float, *, failed: bool) -> None:
        """Called when an operation has returned, raised or been cancelled."""


def instrument(runtime: Runtime, observer: OperationObserver, clock: Clock) -> Runtime:
    """Return a wrapper of `runtime` that reports each operation to `observer`."""
    offered = (kind for kind in _OPTIONAL_PROTOCOLS if isinstance(runtime, kind))
    names = {name for kind in (Runtime, *offered) for name in vars(kind) if name[0] != "_"}
    members = {name: _member(name) for name in names - {"list_pods"}}
    wrapped: Runtime = type("InstrumentedRuntime", (_Wrapper,), members)(runtime, observer, clock)
    return wrapped


class _Wrapper:
    def __init__(self, runtime: Runtime, observer: OperationObserver, clock: Clock) -> None:
        self._runtime = runtime
        self._observer = observer
        self._clock = clock

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        with self._measure(_LIST_PODS if uid is None else _POD_STATUS):
            return await self._runtime.list_pods(uid)

    def measured(self, name: str, operation: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._runtime, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            with self._measure(operation):
                return await method(*arguments, **options)

        return call

    def forwarded(self, name: str) -> Any:
        return getattr(self._runtime, name)

    @contextmanager
    def _measure(self, operation: str) -> Iterator[None]:
        """Report the operation on exit. A cancelled operation does not count as failed."""
        started, failed = self._clock.monotonic(), False
        try:
            yield
        except Exception:
            failed = True
            raise
        finally:
            seconds = (self._clock.monotonic() - started) / 1e9
            self._observer.runtime_operation(operation, seconds, failed=failed)


def _member(name: str) -> property:
    operation = _OPERATIONS.get(name)
    if operation is None:
        return property(lambda self: self.forwarded(name))
    return property(lambda self: self.measured(name, operation))
