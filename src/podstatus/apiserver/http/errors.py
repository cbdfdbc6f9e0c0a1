"""Why a request is refused, as the `v1.Status` that kube-apiserver answers with.

Upstream: apimachinery v0.36.4, pkg/api/errors/errors.go.
"""

from collections.abc import Sequence
from typing import Any

from podstatus.kube.validation.field_errors import FieldError


class Problem(Exception):  # noqa: N818 - it is an answer, not a failure of ours
    """The request cannot be fulfilled; `document` is the body of the answer."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        *,
        metadata: dict[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata or {}
        self.retry_after = retry_after

    @property
    def document(self) -> dict[str, Any]:
        """The `v1.Status`."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        return status | {"code": self.code}


def not_found(resource: str, name: str, *, group: str = "") -> Problem:
    """There is no object of this name; `resource` in the plural."""
    return Problem(
        404,
        "NotFound",
        f'{qualified(resource, group)} "{name}" not found',
        _details(resource, name, group),
    )


def no_such_resource() -> Problem:
    """There is nothing at this path."""
    return Problem(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: str, name: str, *, group: str = "") -> Problem:
    """There is an object of this name already."""
    return Problem(
        409,
        "AlreadyExists",
        f'{qualified(resource, group)} "{name}" already exists',
        _details(resource, name, group),
    )


def conflict(resource: str, name: str, why: str, *, group: str = "") -> Problem:
    """The object is not as the request expects it to be."""
    return Problem(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}',
        _details(resource, name, group),
    )


def invalid(kind: str, name: str, causes: Sequence[FieldError], *, group: str = "") -> Problem:
    """The object breaks rules."""
    told = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    details = _details(kind, name, group) | {
        "causes": [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    }
    message = f'{qualified(kind, group)} "{name}" is invalid: {listed}'
    return Problem(422, "Invalid", message, details)


def forbidden(resource: str, name: str, why: str, *, cause: str = "") -> Problem:
    """Admission does not let it pass; `cause` is a word for programs."""
    details = _details(resource, name, "")
    if cause:
        details["causes"] = [{"reason": cause}]
    return Problem(403, "Forbidden", f'{resource} "{name}" is forbidden: {why}', details)


def bad_request(message: str) -> Problem:
    """The request makes no sense."""
    return Problem(400, "BadRequest", message)


def internal_error(why: str) -> Problem:
    """Something broke that is not the client's fault."""
    details = {"causes": [{"message": why}]}
    return Problem(500, "InternalError", f"Internal error occurred: {why}", details)


def method_not_allowed() -> Problem:
    """The verb is not for this path."""
    return Problem(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        {},
    )


def unsupported_media_type(message: str) -> Problem:
    """The body is of a type that is not understood here."""
    return Problem(415, "UnsupportedMediaType", message)


def expired(message: str, token: str = "") -> Problem:
    """What was asked for is too old: list anew, or go on with this token and the newest state."""
    return Problem(410, "Expired", message, metadata={"continue": token} if token else None)


def qualified(resource: str, group: str) -> str:
    """The resource with its group, as messages have it."""
    return f"{resource}.{group}" if group else resource


def _details(kind: str, name: str, group: str) -> dict[str, Any]:
    details = {"name": name, "group": group, "kind": kind}
    return {key: value for key, value in details.items() if value}
