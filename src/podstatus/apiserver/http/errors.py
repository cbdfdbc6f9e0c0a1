"""Why a request is refused, as the `v1.Status` that kube-apiserver answers with.

Upstream: apimachinery v0.36.4, pkg/api/errors/errors.go.
"""

from collections.abc import Sequence
from typing import Any

from podstatus.kube.validation.field_errors import FieldError


class StatusError(Exception):
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


def not_found(resource: str, name: str, *, group: str = "") -> StatusError:
    """There is no object of this name; `resource` in the plural."""
    return StatusError(
        404,
        "NotFound",
        f'{qualified_resource(resource, group)} "{name}" not found',
        _details(resource, name, group),
    )


def no_such_resource() -> StatusError:
    """There is nothing at this path."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: str, name: str, *, group: str = "") -> StatusError:
    """There is an object of this name already."""
    return StatusError(
        409,
        "AlreadyExists",
        f'{qualified_resource(resource, group)} "{name}" already exists',
        _details(resource, name, group),
    )


def conflict(resource: str, name: str, message: str, *, group: str = "") -> StatusError:
    """The object is not as the request expects it to be."""
    return StatusError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {qualified_resource(resource, group)} "{name}": '
        f"{message}",
        _details(resource, name, group),
    )


def invalid(kind: str, name: str, causes: Sequence[FieldError], *, group: str = "") -> StatusError:
    """The object breaks rules."""
    told = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    details = _details(kind, name, group) | {
        "causes": [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    }
    message = f'{qualified_resource(kind, group)} "{name}" is invalid: {listed}'
    return StatusError(422, "Invalid", message, details)


def forbidden(resource: str, name: str, message: str, *, cause: str = "") -> StatusError:
    """Admission does not let it pass; `cause` is a word for programs."""
    details = _details(resource, name, "")
    if cause:
        details["causes"] = [{"reason": cause}]
    return StatusError(403, "Forbidden", f'{resource} "{name}" is forbidden: {message}', details)


def bad_request(message: str) -> StatusError:
    """The request makes no sense."""
    return StatusError(400, "BadRequest", message)


def internal_error(message: str) -> StatusError:
    """Something broke that is not the client's fault."""
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details)


def method_not_allowed() -> StatusError:
    """The verb is not for this path."""
    return StatusError(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        {},
    )


def unsupported_media_type(message: str) -> StatusError:
    """The body is of a type that is not understood here."""
    return StatusError(415, "UnsupportedMediaType", message)


def expired(message: str, token: str = "") -> StatusError:
    """What was asked for is too old: list anew, or go on with this token and the newest state."""
    return StatusError(410, "Expired", message, metadata={"continue": token} if token else None)


def qualified_resource(resource: str, group: str) -> str:
    """The resource with its group, as messages have it."""
    return f"{resource}.{group}" if group else resource


def _details(kind: str, name: str, group: str) -> dict[str, Any]:
    details = {"name": name, "group": group, "kind": kind}
    return {key: value for key, value in details.items() if value}
