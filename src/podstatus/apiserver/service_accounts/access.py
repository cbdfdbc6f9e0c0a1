"""Who a client is, and what it may do.

There are no roles. The owner, who has the token of the state directory, may do everything. A
service account may read the objects of its namespace except secrets, as with the ClusterRole
`view` in a RoleBinding of its namespace, and discovery.
"""

from typing import Final

import msgspec

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.request.request_info import RequestInfo
from podstatus.kube.scalars.go_text import go_quoted

_READ_VERBS: Final = frozenset(["get", "list", "watch"])
_SECRETS: Final = "secrets"
_READABLE_SUBRESOURCES: Final = frozenset(["", "status", "log"])
_PATHS: Final = frozenset(
    ["/api", "/apis", "/healthz", "/livez", "/openapi", "/readyz", "/version"]
)
_PATH_PREFIXES: Final = ("/api/", "/apis/", "/openapi/")
"""Upstream: the ClusterRole `system:discovery`."""


class ClientIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The user name and groups of an authenticated client."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    namespace: str = ""
    """The namespace of a service account; empty for the owner."""


def authorize(user: ClientIdentity, request: RequestInfo) -> None:
    """Raise StatusError (403) if the user may not do this."""
    if not user.namespace or _may_read(user, request):
        return
    raise StatusError(403, "Forbidden", _denial(user, request))


def _denial(user: ClientIdentity, request: RequestInfo) -> str:
    """Return upstream's message, with the rule that applies here."""
    who = f"User {go_quoted(user.name)} cannot {request.verb}"
    rule = "a service account may read its own namespace, except secrets"
    if not request.resource:
        return f"forbidden: {who} path {go_quoted(request.path)}: {rule}"
    resource = request.resource.partition("/")[0]
    about = f"{resource} {go_quoted(request.name)}" if request.name else resource
    scope = "at the cluster scope"
    if request.namespace:
        scope = f"in the namespace {go_quoted(request.namespace)}"
    what = f"resource {go_quoted(request.resource)} in API group {go_quoted(request.group)}"
    return f"{about} is forbidden: {who} {what} {scope}: {rule}"


def _may_read(user: ClientIdentity, request: RequestInfo) -> bool:
    if request.verb not in _READ_VERBS:
        return False
    if not request.resource:
        return request.path in _PATHS or request.path.startswith(_PATH_PREFIXES)
    resource, _, subresource = request.resource.partition("/")
    return (
        request.namespace == user.namespace
        and resource != _SECRETS
        and subresource in _READABLE_SUBRESOURCES
    )
