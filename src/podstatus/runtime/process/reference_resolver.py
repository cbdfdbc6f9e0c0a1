"""ConfigMaps, secrets and service account tokens that pods refer to."""

from typing import Protocol

from podstatus.base.clock import Clock
from podstatus.kube.api_errors import ApiError
from podstatus.kube.objects.authentication import TokenRequestStatus
from podstatus.kube.objects.cluster import ConfigMap, Secret
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.volumes import ServiceAccountTokenProjection
from podstatus.runtime.process.spec.config_errors import unavailable_reference
from podstatus.runtime.process.spec.environment import ReferencedObjects

_DEFAULT_EXPIRATION_SECONDS = 3600
_SECOND = 1_000_000_000
_MAX_TOKEN_AGE = 24 * 3600 * _SECOND


class PodObjects(Protocol):
    """Reads the API objects that pods refer to. Raises ApiError."""

    async def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        """Return a configMap; None if it does not exist."""

    async def secret(self, namespace: str, name: str) -> Secret | None:
        """Return a secret; None if it does not exist."""

    async def service_account_token(
        self, pod: Pod, audience: str, expiration_seconds: int
    ) -> TokenRequestStatus:
        """Request a new token of the pod's service account."""


class ReferenceResolver:
    """Fetches objects that pods refer to; caches tokens until they need a refresh."""

    def __init__(self, objects: PodObjects, clock: Clock) -> None:
        self._objects = objects
        self._clock = clock
        self._tokens: dict[tuple[PodUID, ServiceAccountTokenProjection], _CachedToken] = {}

    async def fetch(self, pod: Pod, config_maps: set[str], secrets: set[str]) -> ReferencedObjects:
        """Return the objects of these names. Raises CannotStartError if a request fails."""
        namespace = pod.namespace
        try:
            return ReferencedObjects(
                config_maps={n: await self._objects.config_map(namespace, n) for n in config_maps},
                secrets={n: await self._objects.secret(namespace, n) for n in secrets},
            )
        except ApiError as error:
            raise unavailable_reference(str(error)) from error

    async def token(self, pod: Pod, projection: ServiceAccountTokenProjection) -> str:
        """Return a valid token, from the cache if possible. Raises CannotStartError."""
        key, now = (pod.uid, projection), self._clock.now()
        cached = self._tokens.get(key)
        if cached is not None and not cached.needs_refresh(now):
            return cached.text
        seconds = projection.expiration_seconds or _DEFAULT_EXPIRATION_SECONDS
        try:
            response = await self._objects.service_account_token(pod, projection.audience, seconds)
        except ApiError as error:
            if cached is not None and cached.is_valid(now):
                return cached.text
            raise unavailable_reference(f"failed to fetch token: {error}") from error
        expires = response.expiration_timestamp.unix_nanos()
        self._tokens[key] = _CachedToken(response.token, now, expires)
        return response.token

    def forget(self, uid: PodUID) -> None:
        """Drop the cached tokens of a pod."""
        self._tokens = {key: token for key, token in self._tokens.items() if key[0] != uid}


class _CachedToken:
    def __init__(self, text: str, since: int, until: int) -> None:
        self.text = text
        self._issued_at = since
        self._expires_at = until

    def needs_refresh(self, now: int) -> bool:
        """Return whether to request a new one: after 80 % of its lifetime, or after a day.

        Upstream: requiresRefresh, pkg/kubelet/token/token_manager.go v1.36.4.
        """
        age, lifetime = now - self._issued_at, self._expires_at - self._issued_at
        return age > lifetime * 0.8 or age > _MAX_TOKEN_AGE

    def is_valid(self, now: int) -> bool:
        """Return whether the token has not expired."""
        return now < self._expires_at
