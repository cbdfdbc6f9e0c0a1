"""API errors, as the `v1.Status` that kube-apiserver returns.

Upstream: apimachinery v0.36.4, pkg/api/errors/errors.go.
"""

from collections.abc import Sequence
from typing import Any

from podstatus.kube.validation.field_errors import FieldError


class StatusError(Exception):
    """The request fails; `document` is the body of the response."""

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
        """The error as a `v1.Status` document."""
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
    """404: no object of this name; `resource` is the plural."""
    return StatusError(
        404,
        "NotFound",
        f'{qualified_resource(resource, group)} "{name}" not found',
        _details(resource, name, group),
    )


def no_such_resource() -> StatusError:
    """404: no resource at this path."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def port_forward_unsupported() -> StatusError:
    """404: there is no pod network to forward a port from."""
    message = (
        "port-forward is not supported; pods of the process runtime use the host's network: "
        "connect to the port of the container on this machine"
    )
    return StatusError(404, "NotFound", message, {})


def already_exists(resource: str, name: str, *, group: str = "") -> StatusError:
    """409: an object of this name exists."""
    return StatusError(
        409,
        "AlreadyExists",
        f'{qualified_resource(resource, group)} "{name}" already exists',
        _details(resource, name, group),
    )


def conflict(resource: str, name: str, message: str, *, group: str = "") -> StatusError:
    """409: the object is not in the state that the request requires."""
    return StatusError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {qualified_resource(resource, group)} "{name}": '
        f"{message}",
        _details(resource, name, group),
    )


def invalid(kind: str, name: str, causes: Sequence[FieldError], *, group: str = "") -> StatusError:
    """422: the object is invalid, with a cause per field."""
    messages = [f"{cause.field}: {cause.message}" for cause in causes]
    joined = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
    details = _details(kind, name, group) | {
        "causes": [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    }
    message = f'{qualified_resource(kind, group)} "{name}" is invalid: {joined}'
    return StatusError(422, "Invalid", message, details)


def forbidden(resource: str, name: str, message: str, *, cause: str = "") -> StatusError:
    """403: admission rejected the request; `cause` is a machine-readable reason."""
    details = _details(resource, name, "")
    if cause:
        details["causes"] = [{"reason": cause}]
    return StatusError(403, "Forbidden", f'{resource} "{name}" is forbidden: {message}', details)


def bad_request(message: str) -> StatusError:
    """400: the request is malformed."""
    return StatusError(400, "BadRequest", message)


def internal_error(message: str) -> StatusError:
    """500: a failure that is not the client's."""
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details)


def method_not_allowed() -> StatusError:
    """405: the method is not supported at this path."""
    return StatusError(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        {},
    )


def unsupported_verb(resource: str, verb: str, *, group: str = "") -> StatusError:
    """405: the resource exists, but not for this verb."""
    message = (
        f'{verb} is not supported on resources of kind "{qualified_resource(resource, group)}"'
    )
    return StatusError(405, "MethodNotAllowed", message, _details(resource, "", group))


def unsupported_media_type(message: str) -> StatusError:
    """415: the media type of the body is not supported."""
    return StatusError(415, "UnsupportedMediaType", message)


def expired(message: str, token: str = "") -> StatusError:
    """410: the resource version is too old.

    The client has to list again, or continue with `token` and the current state.
    """
    return StatusError(410, "Expired", message, metadata={"continue": token} if token else None)


def qualified_resource(resource: str, group: str) -> str:
    """Return the resource with its group, as messages spell it."""
    return f"{resource}.{group}" if group else resource


def _details(kind: str, name: str, group: str) -> dict[str, Any]:
    details = {"name": name, "group": group, "kind": kind}
    return {key: value for key, value in details.items() if value}
