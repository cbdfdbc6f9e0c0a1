"""The CRI runtime: the runtime port over containerd or another runtime that serves CRI v1.

The runtime keeps all records: what runs, and what ended while no agent was there. Files of pods
are below the folder of the agent.

Upstream: kubeGenericRuntimeManager, pkg/kubelet/kuberuntime v1.36.4.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial

from podstatus.base.clock import Clock
from podstatus.kube.objects.containers import Container, EphemeralContainer
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.runtime.cri.api import containers as c
from podstatus.runtime.cri.api import sandboxes as s
from podstatus.runtime.cri.client.errors import CriCallError
from podstatus.runtime.cri.client.identity import RuntimeIdentity
from podstatus.runtime.cri.client.image_service import ImageService
from podstatus.runtime.cri.client.runtime_service import RuntimeService
from podstatus.runtime.cri.container_preparer import CriContainerPreparer
from podstatus.runtime.cri.image_puller import ImagePuller
from podstatus.runtime.cri.model.attempts import (
    find_attempt,
    prunable_attempts,
    sandbox_attempt,
)
from podstatus.runtime.cri.model.container import container_config
from podstatus.runtime.cri.model.unsupported_fields import (
    check_container_fields,
    check_pod_fields,
)
from podstatus.runtime.cri.pod_calls import PodCalls, PodQueries, tolerant
from podstatus.runtime.cri.pod_lister import PodLister
from podstatus.runtime.cri.streaming_session import open_session
from podstatus.runtime.port import CannotStartError, RuntimePod
from podstatus.runtime.process.logs.reader import read_log
from podstatus.runtime.process.spec.config_errors import config_error
from podstatus.runtime.streams import (
    CommandOutput,
    LogOptions,
    ProcessStream,
    StreamOptions,
    StreamUnavailableError,
)

_SANDBOX_ERROR, _CREATE_ERROR = "CreatePodSandboxError", "CreateContainerError"
_RUN_ERROR = "RunContainerError"
_MIN_GRACE_SECONDS = 1
"""With 0, no stop signal would be sent. CRI has whole seconds."""
_MAX_GRACE_SECONDS = 10**9


class CriRuntime:
    """Runs containers through CRI. Not thread-safe: for one event loop."""

    def __init__(
        self,
        runtime: RuntimeService,
        images: ImageService,
        preparer: CriContainerPreparer,
        *,
        identity: RuntimeIdentity,
        clock: Clock,
        on_close: Callable[[], Awaitable[None]],
    ) -> None:
        self._on_close = on_close
        self._runtime = runtime
        self._identity = identity
        self._preparer = preparer
        self._puller = ImagePuller(images, clock)
        self._lister = PodLister(runtime, identity.name)
        self._pods = PodQueries(runtime)
        self._calls = PodCalls()
        self._clock = clock

    @property
    def name(self) -> str:
        """What the runtime calls itself, as `containerd`."""
        return self._identity.name

    @property
    def version(self) -> str:
        """Version of the container runtime."""
        return self._identity.version

    def image_message(self, image: str) -> str:
        return self._puller.image_message(image)

    async def start_pod(self, pod: Pod) -> None:
        """Create the pod's volumes and a sandbox, unless it has a ready one."""
        await self._calls.settle(pod.uid)
        newest = await self._pods.newest_sandbox(pod.uid)
        if newest is not None and newest.state == s.SANDBOX_READY:
            return
        check_pod_fields(pod)
        await self._preparer.prepare_pod(pod)
        attempt = 0
        if newest is not None:
            # It may still have a network, and containers that are about to end.
            await tolerant(self._runtime.stop_pod_sandbox(newest.id))
            attempt = sandbox_attempt(newest) + 1
        config = await self._preparer.sandbox_config(pod, attempt)
        try:
            await self._calls.finish(pod.uid, self._runtime.run_pod_sandbox(config))
        except CriCallError as error:
            message = f"Failed to create sandbox: {error.message}"
            raise CannotStartError(_SANDBOX_ERROR, message) from error

    async def start_container(self, pod: Pod, container: Container, *, restart_count: int) -> str:
        """Pull the image if needed, create the container and start it."""
        await self._calls.settle(pod.uid)
        sandbox = await self._pods.newest_sandbox(pod.uid)
        if sandbox is None or sandbox.state != s.SANDBOX_READY:
            raise CannotStartError(_RUN_ERROR, "the pod's sandbox is not ready")
        attempts = await self._pods.attempts(pod.uid, container.name)
        attempt = find_attempt(attempts, restart_count)
        if attempt is not None and attempt.pod_sandbox_id != sandbox.id:
            # The runtime has one container of a name and attempt for all sandboxes of a pod.
            await self._remove(pod.uid, attempt)
            attempt = None
        if attempt is not None and attempt.state != c.CONTAINER_CREATED:
            return self._container_id(attempt.id)
        id = (
            attempt.id
            if attempt is not None
            else await self._create(pod, container, sandbox, restart_count)
        )
        try:
            await self._calls.finish(pod.uid, self._runtime.start_container(id))
        except CriCallError as error:
            raise CannotStartError(_RUN_ERROR, error.message) from error
        finally:
            for older in prunable_attempts(attempts):
                await self._remove(pod.uid, older)
        return self._container_id(id)

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        """Send the stop signal, SIGKILL after the grace period, rounded up to whole seconds."""
        container = await self._pods.find_container(uid, self._runtime_id(container_id))
        if container is None or container.state == c.CONTAINER_EXITED:
            return
        grace = min(max(_MIN_GRACE_SECONDS, math.ceil(grace_seconds)), _MAX_GRACE_SECONDS)
        await tolerant(self._runtime.stop_container(container.id, grace))

    async def remove_container(self, uid: PodUID, container_id: str) -> None:
        """Remove an ended attempt and its files; a running one stays."""
        container = await self._pods.find_container(uid, self._runtime_id(container_id))
        if container is not None and container.state != c.CONTAINER_RUNNING:
            await self._remove(uid, container)

    async def stop_pod(self, uid: PodUID) -> None:
        """Kill the pod's containers and release its network."""
        await self._calls.settle(uid)
        for sandbox in await self._pods.sandboxes(uid):
            await tolerant(self._runtime.stop_pod_sandbox(sandbox.id))

    async def remove_pod(self, uid: PodUID) -> None:
        """Stop the pod if necessary, and remove its containers, sandboxes and files."""
        await self.stop_pod(uid)
        for container in await self._pods.containers(uid):
            await tolerant(self._runtime.remove_container(container.id))
        for sandbox in await self._pods.sandboxes(uid):
            await tolerant(self._runtime.remove_pod_sandbox(sandbox.id))
        self._puller.forget(uid)
        await self._preparer.remove_pod(uid)

    async def refresh_pod(self, pod: Pod) -> None:
        """Update configMaps, secrets and tokens in the volumes of a pod.

        Raises CannotStartError.
        """
        await self._preparer.refresh_pod(pod)

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        return await (self._lister.list_all() if uid is None else self._lister.list_pod(uid))

    def changes(self) -> AsyncIterator[PodUID]:
        """Wait forever: changes are found by relisting."""
        return _nothing()

    async def container_logs(
        self, uid: PodUID, container_id: str, options: LogOptions
    ) -> AsyncIterator[bytes]:
        id = self._runtime_id(container_id)
        await self._lister.list_pod(uid)
        path = self._lister.log_path(id)
        if path is None:
            raise StreamUnavailableError(f"container {container_id} does not exist any more")
        ended = partial(self._lister.has_ended, id)
        async for chunk in read_log(path, options, has_ended=ended, clock=self._clock):
            yield chunk

    async def exec_sync(
        self, uid: PodUID, container_id: str, command: tuple[str, ...]
    ) -> CommandOutput:
        """Run a command to its end, for probes and hooks."""
        container = await self._require_running(uid, container_id)
        try:
            result = await self._runtime.exec_sync(container.id, command)
        except CriCallError as error:
            raise StreamUnavailableError(error.message) from error
        return CommandOutput(exit_code=result.exit_code, output=result.stdout + result.stderr)

    async def exec(
        self, uid: PodUID, container_id: str, command: tuple[str, ...], request: StreamOptions
    ) -> ProcessStream:
        container = await self._require_running(uid, container_id)
        # A terminal has one output.
        call = c.CriExecRequest(
            container_id=container.id,
            cmd=command,
            tty=request.tty,
            stdin=request.stdin,
            stdout=request.stdout,
            stderr=request.stderr and not request.tty,
        )
        return await self._open(self._runtime.exec_url(call), request)

    async def attach(self, uid: PodUID, container_id: str, request: StreamOptions) -> ProcessStream:
        container = await self._require_running(uid, container_id)
        call = c.CriAttachRequest(
            container_id=container.id,
            tty=request.tty,
            stdin=request.stdin,
            stdout=request.stdout,
            stderr=request.stderr and not request.tty,
        )
        return await self._open(self._runtime.attach_url(call), request)

    async def close(self) -> None:
        """Stop writing volumes and close the connection; all containers keep running."""
        self._preparer.close()
        await self._on_close()

    async def _create(
        self, pod: Pod, container: Container, sandbox: s.CriPodSandbox, restart_count: int
    ) -> str:
        """Create a container and its files; return its ID. Raises CannotStartError."""
        check_container_fields(pod, container)
        image = await self._puller.ensure_image(
            pod, container, partial(self._preparer.pull_secrets, pod)
        )
        inputs = await self._preparer.prepare_container(
            pod,
            container,
            image,
            pod_ips=await self._pods.ips(sandbox.id),
            attempt=(restart_count, sandbox.id),
            target_id=await self._target_id(pod, container),
        )
        request = c.CriCreateContainerRequest(
            pod_sandbox_id=sandbox.id,
            config=container_config(pod, container, inputs, restart_count=restart_count),
            sandbox_config=await self._preparer.sandbox_config(pod, sandbox_attempt(sandbox)),
        )
        try:
            return await self._calls.finish(pod.uid, self._runtime.create_container(request))
        except CriCallError as error:
            raise CannotStartError(_CREATE_ERROR, error.message) from error

    async def _target_id(self, pod: Pod, container: Container) -> str:
        """Return the running container whose processes an ephemeral container sees, if any."""
        if not isinstance(container, EphemeralContainer) or not container.target_container_name:
            return ""
        name = container.target_container_name
        for attempt in await self._pods.attempts(pod.uid, name):
            if attempt.state == c.CONTAINER_RUNNING:
                return attempt.id
        raise config_error(f"unable to find target container {name}")

    async def _open(self, url: Awaitable[str], request: StreamOptions) -> ProcessStream:
        try:
            return await open_session(await url, request)
        except CriCallError as error:
            raise StreamUnavailableError(error.message) from error

    async def _require_running(self, uid: PodUID, container_id: str) -> c.CriContainer:
        container = await self._pods.find_container(uid, self._runtime_id(container_id))
        if container is None:
            raise StreamUnavailableError(f"container {container_id} does not exist any more")
        if container.state != c.CONTAINER_RUNNING:
            raise StreamUnavailableError(f"container {container_id} is not running")
        return container

    async def _remove(self, uid: PodUID, container: c.CriContainer) -> None:
        await tolerant(self._runtime.remove_container(container.id))
        await asyncio.to_thread(self._preparer.files.remove_attempt, uid, container)

    def _container_id(self, id: str) -> str:
        return f"{self._identity.name}://{id}"

    def _runtime_id(self, container_id: str) -> str:
        return container_id.removeprefix(f"{self._identity.name}://")


async def _nothing() -> AsyncIterator[PodUID]:
    await asyncio.Event().wait()
    yield PodUID("")
