"""Ask an API server who somebody is, and what he may."""

from typing import TypeVar

from podstatus.client.api_client import ApiClient
from podstatus.client.rest.resources import ApiResource
from podstatus.kube.encoding.codec import DecodeError, decode, to_document
from podstatus.kube.encoding.go_json import encode_document
from podstatus.kube.encoding.wire import Wire
from podstatus.kube.errors import RejectedError
from podstatus.kube.objects.authentication import (
    SubjectAccessReview,
    SubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
    TokenReview,
    TokenReviewSpec,
    TokenReviewStatus,
)

TOKEN_REVIEWS = ApiResource("tokenreviews", "authentication.k8s.io", namespaced=False)
ACCESS_REVIEWS = ApiResource("subjectaccessreviews", "authorization.k8s.io", namespaced=False)

W = TypeVar("W", bound=Wire)


class HttpReviews:
    """Reviews over HTTP. All calls raise the errors of `podstatus.kube.errors`."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def review_token(self, spec: TokenReviewSpec) -> TokenReviewStatus:
        """Whose token it is."""
        asked = TokenReview(kind="TokenReview", api_version="authentication.k8s.io/v1", spec=spec)
        return _decode_response(
            await self._client.create(TOKEN_REVIEWS, _encode_body(asked)), TokenReview
        ).status

    async def review_access(self, spec: SubjectAccessReviewSpec) -> SubjectAccessReviewStatus:
        """Whether somebody may do something."""
        asked = SubjectAccessReview(
            kind="SubjectAccessReview", api_version="authorization.k8s.io/v1", spec=spec
        )
        answer = await self._client.create(ACCESS_REVIEWS, _encode_body(asked))
        return _decode_response(answer, SubjectAccessReview).status


def _encode_body(value: Wire) -> bytes:
    return encode_document(to_document(value))


def _decode_response(answer: bytes, kind: type[W]) -> W:
    try:
        return decode(answer, kind)
    except DecodeError as error:
        raise RejectedError(f"the API server's answer is no {kind.__name__}: {error}") from error
