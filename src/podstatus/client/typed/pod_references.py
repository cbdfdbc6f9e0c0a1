"""The runtime's port `PodObjects` over HTTP: the objects that pods refer to."""

from typing import TypeVar

from podstatus.client.api_client import ApiClient
from podstatus.client.informer.managed_fields import decode_uncached
from podstatus.client.rest.resources import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, ApiResource
from podstatus.client.typed.codec import encode_body
from podstatus.kube.api_errors import GoneError, RejectedError
from podstatus.kube.encoding.codec import DecodeError
from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.objects.authentication import (
    BoundObjectReference,
    TokenRequest,
    TokenRequestSpec,
    TokenRequestStatus,
)
from podstatus.kube.objects.cluster import ConfigMap, Secret
from podstatus.kube.objects.pod import Pod

W = TypeVar("W", bound=Wire)
_DEFAULT_ACCOUNT = "default"


class HttpPodObjects:
    """Reads ConfigMaps and Secrets, and requests tokens. Raises ApiError."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        return await self._get(CONFIG_MAPS, namespace, name, ConfigMap)

    async def secret(self, namespace: str, name: str) -> Secret | None:
        return await self._get(SECRETS, namespace, name, Secret)

    async def service_account_token(
        self, pod: Pod, audience: str, expiration_seconds: int
    ) -> TokenRequestStatus:
        """Request a token of the pod's service account, bound to the pod."""
        request = TokenRequest(
            api_version="authentication.k8s.io/v1",
            kind="TokenRequest",
            spec=TokenRequestSpec(
                audiences=(audience,) if audience else None,
                expiration_seconds=expiration_seconds,
                bound_object_ref=BoundObjectReference(
                    api_version="v1", kind="Pod", name=pod.name, uid=pod.uid
                ),
            ),
        )
        body = await self._client.create(
            SERVICE_ACCOUNTS,
            encode_body(request),
            namespace=pod.namespace,
            name=pod.spec.service_account_name or _DEFAULT_ACCOUNT,
            subresource="token",
        )
        status = _decode_response(body, TokenRequest).status
        if not (status.token and status.expiration_timestamp):
            raise RejectedError("the response has no token, or no expiration time")
        return status

    async def _get(
        self, resource: ApiResource, namespace: str, name: str, kind: type[W]
    ) -> W | None:
        try:
            return _decode_response(
                await self._client.get(resource, name, namespace=namespace), kind
            )
        except GoneError:
            return None
        except ValueError as error:  # an invalid name
            raise RejectedError(str(error)) from error


def _decode_response(body: bytes, kind: type[W]) -> W:
    try:
        return decode_uncached(body, kind)
    except DecodeError as error:
        # Without the content, which may be secret.
        raise RejectedError(f"the response is not a {kind.__name__}") from error
