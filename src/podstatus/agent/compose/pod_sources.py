"""Build the pod sources (API server, files, URL) and the mirror pod controller."""

import asyncio
import logging
from contextlib import suppress

from podstatus.agent.compose.dependencies import AgentDependencies
from podstatus.agent.compose.pod_services import PodServices
from podstatus.agent.daemon.cluster_identity import ClusterIdentity
from podstatus.agent.settings.model import AgentSettings
from podstatus.base.clock import Clock
from podstatus.events import reasons
from podstatus.events.object_references import pod_reference
from podstatus.kube.api_errors import ApiError
from podstatus.kube.objects.pod import Pod, is_static_pod
from podstatus.runtime.port import RuntimeDownError
from podstatus.sources.api_source import SOURCE as API
from podstatus.sources.api_source import ApiSource
from podstatus.sources.file_source import SOURCE as FILE
from podstatus.sources.file_source import FileSource
from podstatus.sources.manifest.decode import ManifestProblem
from podstatus.sources.mirror_client import MirrorClient
from podstatus.sources.mirror_controller import MirrorController, MirrorInputs
from podstatus.sources.url_source import SOURCE as HTTP
from podstatus.sources.url_source import UrlSource

logger = logging.getLogger(__name__)

_IDENTITY_TIMEOUT_SECONDS = 3.0
_RETRY_SECONDS = 1.0


def source_names(settings: AgentSettings) -> frozenset[str]:
    configured = {
        API: True,
        FILE: settings.pod_manifest_path is not None,
        HTTP: settings.manifest_url is not None,
    }
    return frozenset(name for name, is_configured in configured.items() if is_configured)


class SourceServices:
    """The pod sources. The agent runs the results of `build` and `mirror_controller`."""

    def __init__(self, dependencies: AgentDependencies, pods: PodServices) -> None:
        self._settings = settings = dependencies.settings
        self._root = root = dependencies.root
        self._client = client = dependencies.clients.pods
        self._pods = pods
        self._node_events = dependencies.node_events
        self._recorder = dependencies.recorder
        self._runtime = dependencies.runtime
        self._heartbeats = dependencies.heartbeats
        self._clock = dependencies.clock
        node_cache = dependencies.node_cache
        self._cluster_identity = ClusterIdentity(
            client, root, embedded=settings.embedded, has_pods=self._has_pods
        )
        self.mirror_controller = MirrorController(
            MirrorClient(client, settings.node_name),
            MirrorInputs(
                static_pods=self._static_pods,
                mirror_pods=pods.pod_manager.mirror_pods,
                may_remove=self._may_remove_mirror,
                node_uid=lambda: node_cache.uid or None,
            ),
            clock=self._clock,
            on_problem=self._report_mirror_problem,
            heartbeat=self._heartbeats.register("mirrors", max_silent_seconds=120),
        )
        dependencies.signals.mirror_changed.connect(self.mirror_controller.wake)

    async def check_server(self) -> None:
        """Check the identity of the API server before the first request that changes anything.

        An unreachable server is checked later. Raises AgentError if it is a different one.
        """
        with suppress(ApiError, TimeoutError):
            async with asyncio.timeout(_IDENTITY_TIMEOUT_SECONDS):
                await self._cluster_identity.check()

    def build(self) -> list["VerifiedApiSource | FileSource | UrlSource"]:
        """Build the configured sources; the caller runs each of them."""
        settings, deliver, beats = self._settings, self._pods.mux.deliver, self._heartbeats
        sources: list[VerifiedApiSource | FileSource | UrlSource] = [self._build_api_source()]
        if settings.pod_manifest_path is not None:
            sources.append(
                FileSource(
                    settings.pod_manifest_path,
                    settings.node_name,
                    lambda pods: deliver(FILE, pods),
                    clock=self._clock,
                    period=settings.file_check_frequency,
                    on_problem=self._report_manifest_problem,
                    heartbeat=beats.register("source-file", max_silent_seconds=120),
                )
            )
        if settings.manifest_url is not None:
            sources.append(
                UrlSource(
                    settings.manifest_url,
                    settings.node_name,
                    lambda pods: deliver(HTTP, pods),
                    headers=settings.manifest_url_header,
                    clock=self._clock,
                    period=settings.http_check_frequency,
                    on_problem=self._report_manifest_problem,
                    heartbeat=beats.register("source-http", max_silent_seconds=120),
                )
            )
        return sources

    def _build_api_source(self) -> "VerifiedApiSource":
        source = ApiSource(
            self._client,
            self._settings.node_name,
            self._pods.mux,
            clock=self._clock,
            heartbeat=self._heartbeats.register("source-api", max_silent_seconds=300),
        )
        return VerifiedApiSource(source, self._cluster_identity, self._clock)

    async def _has_pods(self) -> bool:
        try:
            pods = await self._runtime.list_pods()
        except RuntimeDownError:
            return True
        return bool(pods) or any(self._root.folder("outbox").glob("*.json"))

    def _static_pods(self) -> list[Pod]:
        return [pod for pod in self._pods.pod_manager.pods() if is_static_pod(pod)]

    def _may_remove_mirror(self, full_name: tuple[str, str]) -> bool:
        """True if no static pod of this name exists or is still terminating."""
        return self._pods.mux.all_sources_ready and not self._pods.pod_registry.has_unfinished(
            full_name
        )

    def _report_manifest_problem(self, problem: ManifestProblem) -> None:
        self._node_events.warn(reasons.INVALID_MANIFEST, f"Cannot read static pods from {problem}")

    def _report_mirror_problem(self, pod: Pod, problem: str) -> None:
        self._recorder.warn(pod_reference(pod), reasons.FAILED_CREATE_MIRROR_POD, problem)


class VerifiedApiSource:
    """Follows the API server once its identity is verified."""

    def __init__(self, source: ApiSource, cluster_identity: ClusterIdentity, clock: Clock) -> None:
        self._source = source
        self._cluster_identity = cluster_identity
        self._clock = clock

    async def run(self) -> None:
        """Verify the server, then follow it until cancelled. Raises AgentError."""
        while not self._cluster_identity.is_verified:
            try:
                await self._cluster_identity.check()
            except ApiError as error:
                logger.debug("cannot read the API server identity, will retry: error=%s", error)
                self._source.heartbeat()
                await self._clock.wait(_RETRY_SECONDS)
        await self._source.run()
