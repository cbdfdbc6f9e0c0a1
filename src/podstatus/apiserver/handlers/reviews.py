"""TokenReview and SubjectAccessReview: kubelets ask who a client is and what it may do.

There are no roles: the owner may do everything, all others nothing. Requests to this server itself
are authorized by `service_accounts.access`.

Upstream: pkg/registry/authentication/tokenreview/storage.go,
pkg/registry/authorization/subjectaccessreview/rest.go v1.36.4.
"""

from podstatus.apiserver.http import errors
from podstatus.apiserver.http.messages import HttpRequest, Response, json_response
from podstatus.apiserver.pki.certificates import KUBELET_CLIENT_GROUP, KUBELET_CLIENT_NAME
from podstatus.apiserver.request.field_validation import check_types, decode_error_prefix
from podstatus.apiserver.service_accounts.authenticator import OWNER, Authenticator
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.patch.schema import SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW
from podstatus.kube.unstructured import nested_dict, nested_list, nested_str, nested_value
from podstatus.kube.validation.field_errors import FieldError, invalid_value

_KNOWN_USERS = frozenset([OWNER.name, KUBELET_CLIENT_NAME])

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class ReviewHandler:
    """Answers review requests; nothing is stored."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    def handle(self, request: HttpRequest) -> Response | None:
        """Return the review with its status set; None if the path is not a review.

        Raises StatusError.
        """
        if request.path not in (TOKEN_REVIEWS, ACCESS_REVIEWS):
            return None
        if request.method != "POST":
            raise errors.method_not_allowed()
        review = request.document()
        is_token = request.path == TOKEN_REVIEWS
        kind = "TokenReview" if is_token else "SubjectAccessReview"
        schema = TOKEN_REVIEW if is_token else SUBJECT_ACCESS_REVIEW
        check_types(request.body, schema, decode_error_prefix(kind))
        status = self._token_status(review) if is_token else _access_status(review)
        version = request.path.removeprefix("/apis/").rpartition("/")[0]
        header = {"kind": kind, "apiVersion": version, "metadata": {}}
        return json_response(header | {"spec": nested_dict(review, "spec"), "status": status}, 201)

    def _token_status(self, review: Document) -> Document:
        token = nested_str(review, "spec", "token")
        if not token:
            raise errors.bad_request("token is required for TokenReview in authentication")
        user = self._authenticator.authenticate(token.encode(errors="replace"))
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        info = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
        return {"authenticated": True, "user": {k: v for k, v in info.items() if v}}


def _access_status(review: Document) -> Document:
    causes = _validate_access_review(review)
    if causes:
        group = "authorization.k8s.io"
        raise errors.invalid("SubjectAccessReview", "", causes, group=group)
    groups = nested_list(review, "spec", "groups")
    if nested_str(review, "spec", "user") in _KNOWN_USERS or KUBELET_CLIENT_GROUP in groups:
        return {"allowed": True}
    return {"allowed": False, "reason": "unknown user"}


def _validate_access_review(review: Document) -> list[FieldError]:
    causes = []
    resource_attributes = nested_value(review, "spec", "resourceAttributes")
    path_attributes = nested_value(review, "spec", "nonResourceAttributes")
    if resource_attributes is not None and path_attributes is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        causes.append(invalid_value("spec.nonResourceAttributes", path_attributes, detail))
    if resource_attributes is None and path_attributes is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.append(invalid_value("spec.resourceAttributes", None, detail))
    if not nested_str(review, "spec", "user") and not nested_list(review, "spec", "groups"):
        detail = "at least one of user or group must be specified"
        causes.append(invalid_value("spec.user", "", detail))
    return causes
