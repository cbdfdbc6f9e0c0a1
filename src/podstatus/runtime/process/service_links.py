"""Services as containers see them: as environment variables.

Upstream: makeEnvironmentVariables, pkg/kubelet/kubelet_pods.go v1.36.4.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import Pod, is_static_pod
from podstatus.kube.objects.service import Service
from podstatus.runtime.process.spec.config_errors import unavailable_reference
from podstatus.runtime.process.spec.service_variables import service_variables

SYNC_SECONDS = 1.0
"""How long the start of a container waits for the first list of Services. Pods and Services are
listed at the same time, so without it the first container of an agent would often be retried."""


class Services(Protocol):
    """The Services of the cluster, as a reflector of them has them."""

    @property
    def has_synced(self) -> bool:
        """Whether the first list is complete."""

    async def wait_synced(self) -> None:
        """Wait for the first list."""

    def objects(self) -> Sequence[Service]:
        """Return all known Services, in any order."""


class NoServices:
    """The Services of a node without an API server: none."""

    has_synced = True

    async def wait_synced(self) -> None:
        """Return at once: nothing is listed."""

    def objects(self) -> Sequence[Service]:
        return ()


class ServiceLinks:
    """Provides the service variables of pods."""

    def __init__(self, services: Services, clock: Clock) -> None:
        self._services = services
        self._clock = clock

    async def variables(self, pod: Pod) -> dict[str, str]:
        """Return the variables that the pod's containers get in addition to their own.

        Raises CannotStartError if the Services have not been listed. A static pod starts without
        them: it must not depend on the API server.
        """
        if not is_static_pod(pod):
            await self._wait_synced()
        return service_variables(pod, self._services.objects())

    async def _wait_synced(self) -> None:
        if not self._services.has_synced:
            listed = asyncio.ensure_future(self._services.wait_synced())
            timeout = asyncio.ensure_future(self._clock.wait(SYNC_SECONDS))
            try:
                await asyncio.wait((listed, timeout), return_when=asyncio.FIRST_COMPLETED)
            finally:
                listed.cancel()
                timeout.cancel()
        if not self._services.has_synced:
            raise unavailable_reference(
                "services have not yet been read at least once, cannot construct envvars"
            )
