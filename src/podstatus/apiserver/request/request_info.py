"""The attributes of a request: what it does to which object.

Upstream: RequestInfo, apiserver v0.36.4, pkg/endpoints/request/requestinfo.go.
"""

from typing import Final

import msgspec

from podstatus.apiserver.http.messages import HttpRequest
from podstatus.apiserver.http.router import parse_path

_VERBS: Final = {
    "GET": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_COLLECTION_VERBS: Final = {"GET": "list", "DELETE": "deletecollection"}


class RequestInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes by which requests are authorized, and matched by fault rules."""

    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    """With its subresource; empty for non-resource paths such as /version."""
    namespace: str = ""
    name: str = ""


def request_info(request: HttpRequest) -> RequestInfo:
    verb = _VERBS.get(request.method, request.method.lower())
    target = parse_path(request.path)
    if target is None:
        return RequestInfo(verb=verb, path=request.path)
    if target.name is None:
        is_watch = request.method == "GET" and request.flag("watch")
        verb = "watch" if is_watch else _COLLECTION_VERBS.get(request.method, verb)
    plural = target.resource.plural
    return RequestInfo(
        verb=verb,
        path=request.path,
        group=target.resource.group,
        resource=f"{plural}/{target.subresource}" if target.subresource else plural,
        namespace=target.namespace or "",
        name=target.name or "",
    )
