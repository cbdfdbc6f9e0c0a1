"""Parsing of request paths.

/api/v1/namespaces/{namespace}/{resource}/{name}/{subresource}
/apis/{group}/{version}/{resource}
/api/v1/nodes/{name}/proxy/{path}
"""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

import msgspec

from podstatus.apiserver.resources import NAMESPACES, SERVED_RESOURCES, ResourceInfo

_NODE_PROXY_PATH = re.compile(r"(/api/v1/nodes/[^/]+/proxy)(/.*)")


class ResourcePath(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that a path refers to."""

    resource: ResourceInfo
    namespace: str | None = None
    """None for all namespaces, and for cluster-scoped objects."""
    name: str | None = None
    """None for the whole collection."""
    subresource: str = ""
    proxy_path: str = ""
    """The path after `proxy`, still encoded."""


def parse_path(path: str) -> ResourcePath | None:
    """Return the objects at a path; None if it is not a resource path."""
    proxied = _NODE_PROXY_PATH.fullmatch(path)
    if proxied is not None:
        target = parse_path(proxied[1])
        return None if target is None else msgspec.structs.replace(target, proxy_path=proxied[2])
    segments = [unquote(segment) for segment in path.strip("/").split("/")]
    resources, rest = _resources_in_group(segments)
    if not resources or not rest or "" in rest:
        return None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in NAMESPACES.subresources:
        return _resource_path(resources, rest[2:], namespace=rest[1], namespaced=True)
    return _resource_path(resources, rest, namespace=None, namespaced=None)


def _resources_in_group(
    segments: Sequence[str],
) -> tuple[Mapping[str, ResourceInfo], Sequence[str]]:
    match segments:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest] if group:
            pass
        case _:
            return {}, ()
    return _RESOURCES.get((group, version), {}), rest


def _resource_path(
    resources: Mapping[str, ResourceInfo],
    rest: Sequence[str],
    *,
    namespace: str | None,
    namespaced: bool | None,
) -> ResourcePath | None:
    plural, name, subresource, *more = *rest, *[""] * (3 - len(rest))
    resource = resources.get(plural)
    if resource is None or more:
        return None
    if namespaced and not resource.namespaced:
        return None
    if resource.namespaced and name and namespace is None:
        return None
    if subresource and subresource not in resource.subresources:
        return None
    return ResourcePath(
        resource=resource, namespace=namespace, name=name or None, subresource=subresource
    )


_RESOURCES: dict[tuple[str, str], dict[str, ResourceInfo]] = {}
"""By group and version, then by plural name."""
for _resource in SERVED_RESOURCES:
    _RESOURCES.setdefault((_resource.group, _resource.version), {})[_resource.plural] = _resource
