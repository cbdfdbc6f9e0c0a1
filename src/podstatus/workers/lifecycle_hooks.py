"""Container lifecycle hooks: postStart and preStop.

A container whose postStart hook fails is stopped; a failed preStop hook does not prevent the stop.
Events never contain the hook's output, which may hold secrets.

Upstream: handlerRunner, pkg/kubelet/lifecycle/handlers.go; executePreStopHook,
kuberuntime_container.go v1.36.4.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Sequence

from podstatus.base.timeouts import run_with_timeout
from podstatus.events import reasons
from podstatus.events.object_references import container_reference, pod_reference
from podstatus.kube.objects.containers import Container, HTTPGetAction, LifecycleHandler
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.probes.decide.http_target import BadTargetError, HttpTarget, http_target
from podstatus.runtime.port import RunsHooks
from podstatus.runtime.run_command import CommandError, run_command
from podstatus.workers.actions.compute import format_pod
from podstatus.workers.dependencies import WorkerDependencies

logger = logging.getLogger(__name__)

POST_START = "postStart"
PRE_STOP = "preStop"

HookHttpGet = Callable[[HttpTarget], Awaitable[bool]]
"""Sends the request; True if HTTPS failed and plain HTTP was used. Raises ConnectionError."""


class HookFailedError(Exception):
    """A hook failed; the message has upstream's wording."""


class HookRunner:
    """Runs lifecycle hooks; records events and logs for failures."""

    def __init__(
        self,
        dependencies: WorkerDependencies,
        *,
        http_get: HookHttpGet,
        host_ips: Callable[[], Sequence[str]],
    ) -> None:
        """`host_ips`: addresses of pods in the host network."""
        self._runtime = dependencies.runtime
        self._recorder = dependencies.recorder
        self._clock = dependencies.clock
        self._http_get = http_get
        self._host_ips = host_ips

    async def post_start(self, pod: Pod, container: Container, container_id: str) -> str:
        """Run the container's postStart hook, if any, without a time limit.

        Returns the error message, or an empty string on success.
        """
        handler = container.lifecycle.post_start if container.lifecycle is not None else None
        if handler is None:
            return ""
        try:
            await self._run(POST_START, handler, pod, container, container_id)
        except Exception as error:  # noqa: BLE001 - a runtime may raise anything
            about = container_reference(pod, container.name)
            self._recorder.warn(about, reasons.FAILED_POST_START_HOOK, "PostStartHook failed")
            _log_failure(POST_START, pod, container, error)
            return str(error) or type(error).__name__
        return ""

    async def pre_stop(self, pod: Pod | None, attempt: ContainerFacts, seconds: float) -> None:
        """Run the preStop hook of a running container, if any, for at most `seconds`.

        Does nothing if `seconds` is 0, or if `pod` is None: the hooks of an orphan are unknown.
        Failures are recorded, not raised.
        """
        container = None if pod is None else _find_container(pod, attempt.name)
        if pod is None or container is None or container.lifecycle is None:
            return
        handler = container.lifecycle.pre_stop
        if handler is None or attempt.state is not ContainerRunState.RUNNING or seconds <= 0:
            return
        running = self._run(PRE_STOP, handler, pod, container, attempt.id)
        try:
            await run_with_timeout(seconds, self._clock, running)
        except Exception as error:  # noqa: BLE001 - a runtime may raise anything
            about = container_reference(pod, container.name)
            self._recorder.warn(about, reasons.FAILED_PRE_STOP_HOOK, "PreStopHook failed")
            _log_failure(PRE_STOP, pod, container, error)

    async def _run(
        self,
        hook: str,
        handler: LifecycleHandler,
        pod: Pod,
        container: Container,
        container_id: str,
    ) -> None:
        """Raises HookFailedError, and any exception of the runtime."""
        if handler.sleep is not None:
            await self._clock.wait(handler.sleep.seconds)
        elif isinstance(self._runtime, RunsHooks):
            if not await self._runtime.run_hook(pod.uid, container_id, hook):
                raise _hook_error(self._runtime.name, hook, pod, container, "its script says so")
        elif handler.exec is not None:
            await self._run_exec(handler.exec.command or (), pod, container, container_id)
        elif handler.http_get is not None:
            await self._run_http(handler.http_get, pod, container)
        else:
            raise HookFailedError("Cannot run handler: it is neither exec, httpGet nor sleep")

    async def _run_exec(
        self, command: tuple[str, ...], pod: Pod, container: Container, container_id: str
    ) -> None:
        text = " ".join(command)
        try:
            result = await run_command(
                self._runtime, pod.uid, container_id, command, seconds=None, clock=self._clock
            )
        except CommandError as error:
            message = f'{error}, message: ""'
            raise _hook_error("Exec", f"[{text}]", pod, container, message) from error
        if result.exit_code:
            message = (
                f"command '{text}' exited with {result.exit_code}: {result.output}, "
                f"message: {_quote(result.output)}"
            )
            raise _hook_error("Exec", f"[{text}]", pod, container, message)

    async def _run_http(self, action: HTTPGetAction, pod: Pod, container: Container) -> None:
        try:
            address = action.host or await self._pod_ip(pod)
            target = http_target(action, container, pod_ip=address, purpose="lifecycle")
            fell_back = await self._http_get(target)
        except (BadTargetError, ConnectionError) as error:
            raise _hook_error("HTTP", action.path, pod, container, str(error)) from error
        if fell_back:
            host = target.url.partition("://")[2].partition("/")[0]
            self._recorder.warn(
                pod_reference(pod),
                reasons.LIFECYCLE_HTTP_FALLBACK,
                f"request to HTTPS lifecycle hook {host} got HTTP response, "
                "retry with HTTP succeeded",
            )

    async def _pod_ip(self, pod: Pod) -> str:
        """The pod's IP from the runtime, since the cache may be older than the start; or empty."""
        runtime_pod = next(iter(await self._runtime.list_pods(pod.uid)), None)
        addresses = () if runtime_pod is None else runtime_pod.facts.ips
        return next(iter(addresses or self._host_ips()), "")


def _find_container(pod: Pod, name: str) -> Container | None:
    """The container or sidecar of this name; other kinds of containers have no hooks."""
    for containers in (pod.spec.containers, pod.spec.init_containers):
        for container in containers or ():
            if container.name == name:
                return container
    return None


def _hook_error(
    kind: str, target: str, pod: Pod, container: Container, message: str
) -> HookFailedError:
    return HookFailedError(
        f"{kind} lifecycle hook ({target}) for Container {_quote(container.name)} in Pod "
        f"{_quote(format_pod(pod))} failed - error: {message}"
    )


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _log_failure(hook: str, pod: Pod, container: Container, error: Exception) -> None:
    logger.warning(
        "lifecycle hook failed: hook=%s pod=%s/%s container=%s error=%s",
        hook,
        pod.namespace,
        pod.name,
        container.name,
        str(error) or type(error).__name__,
    )
