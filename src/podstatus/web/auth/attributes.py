"""Map a request to the verb and the node subresources that authorize it.

Upstream: GetRequestAttributes, pkg/kubelet/server/auth.go v1.36.4.
"""

# Differs from upstream, which has no verb for HEAD and so denies it to all but cluster admins.
_VERBS = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_EXCLUSIVE_SUBRESOURCES = {
    "stats": "stats",
    "metrics": "metrics",
    "logs": "log",
    "checkpoint": "checkpoint",
    "statusz": "statusz",
}
"""Subresources that the right to `nodes/proxy` does not cover."""
_PROXY_COVERED_SUBRESOURCES = {
    "pods": "pods",
    "runningpods": "pods",
    "healthz": "healthz",
    "configz": "configz",
    "v1": "pods",
    "openapi": "pods",
    "openapi.json": "pods",
}
"""Subresources with a right of their own; `nodes/proxy` covers them, too.

The query API needs the right of `/pods`: it shows the same pods, with less of their specs.
"""


def request_verb(method: str) -> str:
    """The verb of a method; empty for one that has none."""
    return _VERBS.get(method, "")


def node_subresources(path: str) -> tuple[str, ...]:
    """The subresources of the Node for a path; the right to any of them is sufficient."""
    root = path.removeprefix("/").partition("/")[0]
    if root == "flagz":
        return ("configz",)
    if root in _EXCLUSIVE_SUBRESOURCES:
        return (_EXCLUSIVE_SUBRESOURCES[root],)
    if root in _PROXY_COVERED_SUBRESOURCES:
        return _PROXY_COVERED_SUBRESOURCES[root], "proxy"
    return ("proxy",)
