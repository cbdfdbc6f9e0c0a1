"""Send TokenReview and SubjectAccessReview requests."""

from podstatus.client.api_client import ApiClient
from podstatus.client.rest.resources import ApiResource
from podstatus.client.typed.codec import decode_response, encode_body
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


class HttpReviews:
    """Sends reviews. All calls raise the errors of `podstatus.kube.api_errors`."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def review_token(self, spec: TokenReviewSpec) -> TokenReviewStatus:
        """Authenticate a token (TokenReview) and return its user."""
        review = TokenReview(kind="TokenReview", api_version="authentication.k8s.io/v1", spec=spec)
        return decode_response(
            await self._client.create(TOKEN_REVIEWS, encode_body(review)), TokenReview
        ).status

    async def review_access(self, spec: SubjectAccessReviewSpec) -> SubjectAccessReviewStatus:
        """Check the permission of a user (SubjectAccessReview)."""
        review = SubjectAccessReview(
            kind="SubjectAccessReview", api_version="authorization.k8s.io/v1", spec=spec
        )
        body = await self._client.create(ACCESS_REVIEWS, encode_body(review))
        return decode_response(body, SubjectAccessReview).status
