"""A runtime wrapper that counts operations and measures how long they take.

    runtime = instrument(runtime, observer, clock)

The wrapper offers exactly the optional protocols of the runtime it wraps, so that checks such as
`isinstance(runtime, PodStats)` give the same answer before and after.

Upstream: instrumentedRuntimeService, pkg/kubelet/kuberuntime/instrumented_services.go v1.36.4; the
operation names are upstream's.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from podstatus.base.clock import Clock, Elapsed
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.usage import Usage
from podstatus.runtime.port import (
    ContainerStats,
    NodeLabels,
    PodStats,
    ProbeResult,
    ReportsProbes,
    ResizesPods,
    RunsHooks,
    Runtime,
    RuntimePod,
)
from podstatus.runtime.streams import LogOptions, Logs, ProcessStream, Streaming, StreamOptions

RUN_POD = "run_podsandbox"
START_CONTAINER = "start_container"
STOP_CONTAINER = "stop_container"
REMOVE_CONTAINER = "remove_container"
STOP_POD = "stop_podsandbox"
REMOVE_POD = "remove_podsandbox"
LIST_PODS = "list_podsandbox"
POD_STATUS = "podsandbox_status"
USAGE = "list_podsandbox_stats"
RESIZE = "update_podsandbox_resources"
EXEC = "exec"
ATTACH = "attach"


class OperationObserver(Protocol):
    """Receives every runtime operation. Must not block."""

    def runtime_operation(self, operation: str, seconds: float, *, failed: bool) -> None:
        """Called when an operation has returned, raised or been cancelled."""


def instrument(runtime: Runtime, observer: OperationObserver, clock: Clock) -> Runtime:
    """Return a wrapper of `runtime` that reports each operation to `observer`."""
    offers = tuple(
        offer for kind, offer in _CAPABILITY_WRAPPERS.items() if isinstance(runtime, kind)
    )
    wrapper_type = type("MeasuredRuntime", (*offers, _InstrumentedRuntime), {})
    wrapped: Runtime = wrapper_type(runtime, observer, clock)
    return wrapped


class _Wrapper:
    def __init__(self, runtime: Any, observer: OperationObserver, clock: Clock) -> None:
        self._runtime = runtime
        self._observer = observer
        self._clock = clock

    @contextmanager
    def _measure(self, operation: str) -> Iterator[None]:
        """Report the operation on exit. A cancelled operation does not count as failed."""
        elapsed, failed = Elapsed(self._clock), False
        try:
            yield
        except Exception:
            failed = True
            raise
        finally:
            self._observer.runtime_operation(operation, elapsed.seconds(), failed=failed)


class _InstrumentedRuntime(_Wrapper):
    _runtime: Runtime

    @property
    def name(self) -> str:
        return self._runtime.name

    @property
    def version(self) -> str:
        return self._runtime.version

    async def start_pod(self, pod: Pod) -> None:
        with self._measure(RUN_POD):
            await self._runtime.start_pod(pod)

    async def start_container(self, pod: Pod, container: Container, *, restart_count: int) -> str:
        with self._measure(START_CONTAINER):
            return await self._runtime.start_container(pod, container, restart_count=restart_count)

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        with self._measure(STOP_CONTAINER):
            await self._runtime.stop_container(uid, container_id, grace_seconds=grace_seconds)

    async def remove_container(self, uid: PodUID, container_id: str) -> None:
        with self._measure(REMOVE_CONTAINER):
            await self._runtime.remove_container(uid, container_id)

    async def stop_pod(self, uid: PodUID) -> None:
        with self._measure(STOP_POD):
            await self._runtime.stop_pod(uid)

    async def remove_pod(self, uid: PodUID) -> None:
        with self._measure(REMOVE_POD):
            await self._runtime.remove_pod(uid)

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        with self._measure(LIST_PODS if uid is None else POD_STATUS):
            return await self._runtime.list_pods(uid)

    def changes(self) -> AsyncIterator[PodUID]:
        return self._runtime.changes()


class _InstrumentedPodStats(_Wrapper):
    _runtime: PodStats

    async def usage(self) -> Mapping[PodUID, Usage]:
        with self._measure(USAGE):
            return await self._runtime.usage()


class _InstrumentedContainerStats(_Wrapper):
    _runtime: ContainerStats

    def container_usage(self) -> Mapping[PodUID, Mapping[str, Usage]]:
        return self._runtime.container_usage()


class _InstrumentedResizer(_Wrapper):
    _runtime: ResizesPods

    async def resize_pod(self, pod: Pod, containers: Mapping[str, str]) -> None:
        with self._measure(RESIZE):
            await self._runtime.resize_pod(pod, containers)


class _InstrumentedNodeLabels(_Wrapper):
    _runtime: NodeLabels

    @property
    def node_labels(self) -> Mapping[str, str]:
        return self._runtime.node_labels


class _InstrumentedHooks(_Wrapper):
    _runtime: RunsHooks

    async def run_hook(self, uid: PodUID, container_id: str, hook: str) -> bool:
        return await self._runtime.run_hook(uid, container_id, hook)


class _InstrumentedProbes(_Wrapper):
    _runtime: ReportsProbes

    def probe_results(self) -> AsyncIterator[ProbeResult]:
        return self._runtime.probe_results()


class _InstrumentedLogs(_Wrapper):
    _runtime: Logs

    def container_logs(
        self, uid: PodUID, container_id: str, options: LogOptions
    ) -> AsyncIterator[bytes]:
        return self._runtime.container_logs(uid, container_id, options)


class _InstrumentedStreaming(_Wrapper):
    _runtime: Streaming

    async def exec(
        self, uid: PodUID, container_id: str, command: tuple[str, ...], request: StreamOptions
    ) -> ProcessStream:
        with self._measure(EXEC):
            return await self._runtime.exec(uid, container_id, command, request)

    async def attach(self, uid: PodUID, container_id: str, request: StreamOptions) -> ProcessStream:
        with self._measure(ATTACH):
            return await self._runtime.attach(uid, container_id, request)


_CAPABILITY_WRAPPERS: Mapping[type, type] = {
    PodStats: _InstrumentedPodStats,
    ContainerStats: _InstrumentedContainerStats,
    ResizesPods: _InstrumentedResizer,
    NodeLabels: _InstrumentedNodeLabels,
    RunsHooks: _InstrumentedHooks,
    ReportsProbes: _InstrumentedProbes,
    Logs: _InstrumentedLogs,
    Streaming: _InstrumentedStreaming,
}
"""Optional protocols of a runtime, and the wrapper that forwards each."""
