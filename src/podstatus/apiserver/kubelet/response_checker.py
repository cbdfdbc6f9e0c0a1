"""Translation of kubelet errors into API errors.

Upstream: apiserver v0.36.4, pkg/registry/generic/rest/response_checker.go; apimachinery v0.36.4,
NewGenericServerResponse in pkg/api/errors/errors.go.
"""

import msgspec

from podstatus.apiserver.http import errors
from podstatus.apiserver.http.errors import StatusError
from podstatus.base.msgspec_json import decode_json
from podstatus.kube.scalars.go_text import go_quoted

_GENERIC_MESSAGES = {
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: (
        "TooManyRequests",
        "the server has received too many requests and has asked us to try again later",
    ),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        (
            "the server was unable to return a response in the time allotted, but may still be "
            "processing the request"
        ),
    ),
}


class _Status(msgspec.Struct):
    kind: str = ""
    message: str = ""
    reason: str = ""


def log_error(code: int, body: str, pod: str) -> StatusError:
    """Return the API error for a kubelet's response to a log request."""
    if code == 400:
        return errors.bad_request(body)
    if code == 500:
        return errors.internal_error(body)
    reason, message = _generic_response(code, body)
    details = {"name": pod, "kind": "pods/log"}
    return StatusError(code, reason, f"{message} ( pods/log {pod})", details)


def upgrade_error(code: int, body: str) -> StatusError:
    """Return the API error for a refused WebSocket upgrade, with the kubelet's message."""
    try:
        status = decode_json(body, _Status)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        status = _Status()
    if status.kind == "Status" and status.message:
        return StatusError(code, status.reason, status.message)
    message = f"unable to upgrade connection: {body.strip() or f'status code {code}'}"
    return errors.bad_request(message) if code == 400 else errors.internal_error(message)


def _generic_response(code: int, body: str) -> tuple[str, str]:
    if code == 403:
        return "Forbidden", body
    if code in _GENERIC_MESSAGES:
        return _GENERIC_MESSAGES[code]
    if code >= 500:
        prefix = f"an error on the server ({go_quoted(body)}) has prevented the request from"
        return "InternalError", f"{prefix} succeeding"
    return (
        "",
        f"the server responded with the status code {code} but did not return more information",
    )
