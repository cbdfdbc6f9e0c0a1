"""What a pod refers to in the API server, and how it is got at."""

from typing import Protocol

from podstatus.base.clock import Clock
from podstatus.kube.errors import ApiError
from podstatus.kube.objects.authentication import TokenRequestStatus
from podstatus.kube.objects.cluster import ConfigMap, Secret
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.volumes import ServiceAccountTokenProjection
from podstatus.runtime.process.spec.config_errors import config_error
from podstatus.runtime.process.spec.environment import ReferencedObjects

_DEFAULT_EXPIRATION_SECONDS = 3600
_SECOND = 1_000_000_000
_MAX_TOKEN_AGE = 24 * 3600 * _SECOND


class PodObjects(Protocol):
    """The objects of the API server that pods refer to. Raises ApiError."""

    async def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        """A configMap; None if there is none of this name."""

    async def secret(self, namespace: str, name: str) -> Secret | None:
        """A secret; None if there is none of this name."""

    async def service_account_token(
        self, pod: Pod, audience: str, expiration_seconds: int
    ) -> TokenRequestStatus:
        """A new token of the account that a pod runs under."""


class ReferenceResolver:
    """Fetches what pods refer to; tokens are kept until they are to be renewed."""

    def __init__(self, objects: PodObjects, clock: Clock) -> None:
        self._objects = objects
        self._clock = clock
        self._tokens: dict[tuple[PodUID, ServiceAccountTokenProjection], _CachedToken] = {}

    async def fetch(self, pod: Pod, config_maps: set[str], secrets: set[str]) -> ReferencedObjects:
        """The objects of these names. Raises CannotStartError if they cannot be had."""
        namespace = pod.namespace
        try:
            return ReferencedObjects(
                config_maps={n: await self._objects.config_map(namespace, n) for n in config_maps},
                secrets={n: await self._objects.secret(namespace, n) for n in secrets},
            )
        except ApiError as error:
            raise config_error(str(error)) from error

    async def token(self, pod: Pod, projection: ServiceAccountTokenProjection) -> str:
        """A token that is still good for a while. Raises CannotStartError."""
        key, now = (pod.uid, projection), self._clock.now()
        kept = self._tokens.get(key)
        if kept is not None and not kept.needs_refresh(now):
            return kept.text
        seconds = projection.expiration_seconds or _DEFAULT_EXPIRATION_SECONDS
        try:
            made = await self._objects.service_account_token(pod, projection.audience, seconds)
        except ApiError as error:
            if kept is not None and kept.is_valid(now):
                return kept.text
            raise config_error(f"failed to fetch token: {error}") from error
        expires = made.expiration_timestamp.unix_nanos()
        self._tokens[key] = _CachedToken(made.token, now, expires)
        return made.token

    def forget(self, uid: PodUID) -> None:
        """Forget the tokens of a pod."""
        self._tokens = {key: kept for key, kept in self._tokens.items() if key[0] != uid}


class _CachedToken:
    """A token, and since when and until when it is good."""

    def __init__(self, text: str, since: int, until: int) -> None:
        self.text = text
        self._issued_at = since
        self._expires_at = until

    def needs_refresh(self, now: int) -> bool:
        """Whether it is time for another: after 80 % of its time, or a day.

        Upstream: requiresRefresh, pkg/kubelet/token/token_manager.go v1.36.4.
        """
        age, life = now - self._issued_at, self._expires_at - self._issued_at
        return age > life * 0.8 or age > _MAX_TOKEN_AGE

    def is_valid(self, now: int) -> bool:
        """Whether it can still be used."""
        return now < self._expires_at
