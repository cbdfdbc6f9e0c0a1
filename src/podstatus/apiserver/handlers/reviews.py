"""Who somebody is, and what they may do: asked by agents about those who ask them.

There are no roles here: whoever this server knows may do everything, all others nothing.

Upstream: pkg/registry/authentication/tokenreview/storage.go,
pkg/registry/authorization/subjectaccessreview/rest.go v1.36.4.
"""

import hmac

from podstatus.apiserver.http import errors
from podstatus.apiserver.http.messages import HttpRequest, Response, json_response
from podstatus.apiserver.pki.certificates import KUBELET_CLIENT_GROUP, KUBELET_CLIENT_NAME
from podstatus.apiserver.request.field_validation import check_types, decode_error_prefix
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.patch.schema import SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW
from podstatus.kube.unstructured import nested_dict, nested_list, nested_str, nested_value
from podstatus.kube.validation.field_errors import FieldError, invalid_value

USER = "podstatus"
"""Whoever has the token."""
_KNOWN_USERS = frozenset([USER, KUBELET_CLIENT_NAME])
_GROUPS = [KUBELET_CLIENT_GROUP, "system:authenticated"]

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class ReviewHandler:
    """Answers questions about users; nothing is stored."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def handle(self, request: HttpRequest) -> Response | None:
        """What is asked, with the answer in its status; None if it is no review. Raises Problem."""
        if request.path not in (TOKEN_REVIEWS, ACCESS_REVIEWS):
            return None
        if request.method != "POST":
            raise errors.method_not_allowed()
        asked = request.document()
        is_token = request.path == TOKEN_REVIEWS
        kind = "TokenReview" if is_token else "SubjectAccessReview"
        schema = TOKEN_REVIEW if is_token else SUBJECT_ACCESS_REVIEW
        check_types(request.body, schema, decode_error_prefix(kind))
        status = self._token_status(asked) if is_token else _access_status(asked)
        version = request.path.removeprefix("/apis/").rpartition("/")[0]
        named = {"kind": kind, "apiVersion": version, "metadata": {}}
        return json_response(named | {"spec": nested_dict(asked, "spec"), "status": status}, 201)

    def _token_status(self, review: Document) -> Document:
        token = nested_str(review, "spec", "token")
        if not token:
            raise errors.bad_request("token is required for TokenReview in authentication")
        if not hmac.compare_digest(token.encode(errors="replace"), self._token):
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": {"username": USER, "groups": _GROUPS}}


def _access_status(review: Document) -> Document:
    causes = _validate_access_review(review)
    if causes:
        group = "authorization.k8s.io"
        raise errors.invalid("SubjectAccessReview", "", causes, group=group)
    groups = nested_list(review, "spec", "groups")
    if nested_str(review, "spec", "user") in _KNOWN_USERS or KUBELET_CLIENT_GROUP in groups:
        return {"allowed": True}
    return {"allowed": False, "reason": "this server does not know the user"}


def _validate_access_review(review: Document) -> list[FieldError]:
    causes = []
    of_resource = nested_value(review, "spec", "resourceAttributes")
    of_path = nested_value(review, "spec", "nonResourceAttributes")
    if of_resource is not None and of_path is not None:
        told = "cannot be specified in combination with resourceAttributes"
        causes.append(invalid_value("spec.nonResourceAttributes", of_path, told))
    if of_resource is None and of_path is None:
        told = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.append(invalid_value("spec.resourceAttributes", None, told))
    if not nested_str(review, "spec", "user") and not nested_list(review, "spec", "groups"):
        told = "at least one of user or group must be specified"
        causes.append(invalid_value("spec.user", "", told))
    return causes
