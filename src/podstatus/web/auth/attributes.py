"""What a request to the agent is, in the words of authorization.

Upstream: GetRequestAttributes, pkg/kubelet/server/auth.go v1.36.4.
"""

# Ours: upstream has no verb for HEAD, and so refuses it to all but the mightiest.
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
"""Parts of the node that the right to `nodes/proxy` does not cover."""
_PROXY_COVERED_SUBRESOURCES = {
    "pods": "pods",
    "runningpods": "pods",
    "healthz": "healthz",
    "configz": "configz",
    "v1": "pods",
    "openapi": "pods",
    "openapi.json": "pods",
}
"""Parts of the node that have a right of their own; `nodes/proxy` covers them too.

Our own API tells of pods what `/pods` tells, and less of their specs.
"""


def request_verb(method: str) -> str:
    """The verb of a method; empty for one that has none."""
    return _VERBS.get(method, "")


def node_subresources(path: str) -> tuple[str, ...]:
    """The parts of the Node of which the right to any one is enough for a path."""
    root = path.removeprefix("/").partition("/")[0]
    if root == "flagz":
        return ("configz",)
    if root in _EXCLUSIVE_SUBRESOURCES:
        return (_EXCLUSIVE_SUBRESOURCES[root],)
    if root in _PROXY_COVERED_SUBRESOURCES:
        return _PROXY_COVERED_SUBRESOURCES[root], "proxy"
    return ("proxy",)
