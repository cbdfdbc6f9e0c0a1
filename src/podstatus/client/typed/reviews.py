"""Send TokenReview and SubjectAccessReview requests."""

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
    """Sends reviews. All calls raise the errors of `podstatus.kube.errors`."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def review_token(self, spec: TokenReviewSpec) -> TokenReviewStatus:
        """Authenticate a token (TokenReview) and return its user."""
        review = TokenReview(kind="TokenReview", api_version="authentication.k8s.io/v1", spec=spec)
        return _decode_response(
            await self._client.create(TOKEN_REVIEWS, _encode_body(review)), TokenReview
        ).status

    async def review_access(self, spec: SubjectAccessReviewSpec) -> SubjectAccessReviewStatus:
        """Check the permission of a user (SubjectAccessReview)."""
        review = SubjectAccessReview(
            kind="SubjectAccessReview", api_version="authorization.k8s.io/v1", spec=spec
        )
        body = await self._client.create(ACCESS_REVIEWS, _encode_body(review))
        return _decode_response(body, SubjectAccessReview).status


def _encode_body(value: Wire) -> bytes:
    return encode_document(to_document(value))


def _decode_response(body: bytes, kind: type[W]) -> W:
    try:
        return decode(body, kind)
    except DecodeError as error:
        raise RejectedError(f"the response is not a {kind.__name__}: {error}") from error
