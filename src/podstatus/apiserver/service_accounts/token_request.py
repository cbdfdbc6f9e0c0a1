"""Requests of tokens: POST to `serviceaccounts/NAME/token`.

Upstream: pkg/registry/core/serviceaccount/storage/token.go,
pkg/apis/authentication/validation/validation.go v1.36.4.
"""

import uuid

from podstatus.apiserver.generic_registry import Registry
from podstatus.apiserver.http import errors
from podstatus.apiserver.http.messages import HttpRequest, Response, json_response
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.request.field_validation import check_types, decode_error_prefix
from podstatus.apiserver.resources import PODS
from podstatus.apiserver.service_accounts.tokens import (
    ISSUER,
    KubernetesClaims,
    NamedObject,
    TokenClaims,
    sign,
    user_name,
)
from podstatus.apiserver.strategies.base import Document
from podstatus.base.clock import Clock
from podstatus.kube.encoding.codec import from_document, to_document
from podstatus.kube.objects.authentication import (
    BoundObjectReference,
    TokenRequest,
    TokenRequestSpec,
    TokenRequestStatus,
)
from podstatus.kube.patch.schema import TOKEN_REQUEST
from podstatus.kube.scalars.time import Time
from podstatus.kube.unstructured import nested_str
from podstatus.kube.validation.field_errors import FieldError, invalid_value

DEFAULT_ACCOUNT = "default"
_GROUP = "authentication.k8s.io"
_DEFAULT_SECONDS = 3600
_MIN_SECONDS, _MAX_SECONDS = 600, 2**32
_KIND = "TokenRequest"


class TokenRequestHandler:
    """Issues tokens of service accounts; nothing is stored."""

    def __init__(self, registry: Registry, signing_key: bytes, clock: Clock) -> None:
        self._registry = registry
        self._signing_key = signing_key
        self._clock = clock

    def handle(self, request: HttpRequest, target: ResourcePath) -> Response:
        """Return the request with a token. Raises StatusError."""
        account = self._registry.get(target).document()
        if not request.is_protobuf:
            check_types(request.body, TOKEN_REQUEST, decode_error_prefix(_KIND, f"{_GROUP}/v1"))
        sent = from_document(request.document(), TokenRequest)
        if causes := _validate(sent.spec):
            raise errors.invalid(_KIND, target.name or "", causes, group=_GROUP)
        now = self._clock.now() // 10**9
        claims = self._claims(target, account, sent.spec, now)
        status = TokenRequestStatus(
            token=sign(claims, self._signing_key),
            expiration_timestamp=Time.from_unix_nanos(claims.exp * 10**9),
        )
        spec = TokenRequestSpec(
            audiences=claims.aud,
            expiration_seconds=claims.exp - now,
            bound_object_ref=sent.spec.bound_object_ref,
        )
        response = TokenRequest(kind=_KIND, api_version=f"{_GROUP}/v1", spec=spec, status=status)
        metadata = {"name": target.name, "namespace": target.namespace}
        return json_response(to_document(response) | {"metadata": metadata}, 201)

    def _claims(
        self, target: ResourcePath, account: Document, spec: TokenRequestSpec, now: int
    ) -> TokenClaims:
        namespace, name = target.namespace or "", target.name or ""
        seconds = spec.expiration_seconds
        return TokenClaims(
            aud=spec.audiences or (ISSUER,),
            exp=now + (_DEFAULT_SECONDS if seconds is None else seconds),
            iat=now,
            iss=ISSUER,
            jti=str(uuid.uuid4()),
            kubernetes=KubernetesClaims(
                namespace=namespace,
                serviceaccount=NamedObject(name, nested_str(account, "metadata", "uid")),
                pod=self._bound_pod(namespace, name, spec.bound_object_ref),
            ),
            nbf=now,
            sub=user_name(namespace, name),
        )

    def _bound_pod(
        self, namespace: str, account: str, reference: BoundObjectReference | None
    ) -> NamedObject | None:
        if reference is None:
            return None
        if (reference.api_version, reference.kind) != ("v1", PODS.kind):
            what = f"{reference.api_version}, Kind={reference.kind}"
            raise errors.bad_request(f"cannot bind token to object of type {what}")
        path = ResourcePath(resource=PODS, namespace=namespace, name=reference.name)
        pod = self._registry.get(path).document()
        uid = nested_str(pod, "metadata", "uid")
        if reference.uid and reference.uid != uid:
            why = f"the UID in the bound object reference ({reference.uid}) does not match the UID"
            raise errors.conflict(PODS.plural, reference.name, f"{why} in record ({uid})")
        if (nested_str(pod, "spec", "serviceAccountName") or DEFAULT_ACCOUNT) != account:
            raise errors.bad_request(
                f'cannot bind token for serviceaccount "{account}" to pod running with different '
                "serviceaccount name."
            )
        return NamedObject(reference.name, uid)


def _validate(spec: TokenRequestSpec) -> list[FieldError]:
    seconds, field = spec.expiration_seconds, "spec.expirationSeconds"
    if seconds is not None and seconds < _MIN_SECONDS:
        return [invalid_value(field, seconds, "may not specify a duration less than 10 minutes")]
    if seconds is not None and seconds > _MAX_SECONDS:
        why = "may not specify a duration larger than 2^32 seconds"
        return [invalid_value(field, seconds, why)]
    return []
