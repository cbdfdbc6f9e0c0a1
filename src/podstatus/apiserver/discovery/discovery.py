"""API discovery documents, unaggregated and aggregated.

Upstream: apiserver v0.36.4, pkg/endpoints/discovery; documents in kubernetes v1.36.4,
api/discovery.
"""

from podstatus.apiserver.resources import SERVED_RESOURCES, ResourceInfo
from podstatus.apiserver.strategies.base import Document

GIT_VERSION = "v1.36.4+podstatus"
"""The API is that of v1.36.4; the build metadata names the implementation."""

AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_READ_WRITE = ("get", "patch", "update")
_CONNECT = ("create", "get")
_SUBRESOURCES: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "attach": ("PodAttachOptions", _CONNECT),
    "binding": ("Binding", ("create",)),
    "exec": ("PodExecOptions", _CONNECT),
    "log": (None, ("get",)),
    "proxy": ("NodeProxyOptions", ("create", "delete", "get", "patch", "update")),
    "resize": (None, _READ_WRITE),
    "status": (None, _READ_WRITE),
    "token": ("TokenRequest", ("create",)),
}
"""Kind (None: that of the resource) and verbs of each."""
_FOREIGN_KINDS = {"token": ("authentication.k8s.io", "v1")}
"""Group and version of subresources whose kind is of another group."""


def version_info() -> Document:
    """Return the document of `/version`."""
    major, minor, _ = GIT_VERSION.removeprefix("v").split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    }


def api_versions() -> Document:
    """Return the document of `/api`: the versions of the core group."""
    return {
        "kind": "APIVersions",
        "versions": group_versions(""),
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    }


def api_group_list() -> Document:
    """Return the document of `/apis`: all groups but the core group."""
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name) for name in groups() if name],
    }


def api_group(name: str) -> Document | None:
    """Return the document of `/apis/<group>`; None if there is no such group."""
    if not name or name not in groups():
        return None
    return {"kind": "APIGroup", "apiVersion": "v1"} | _group(name)


def api_resource_list(group: str, version: str) -> Document | None:
    """Return the document of `/api/v1` or `/apis/<group>/<version>`; None if there is none."""
    resources = _resources(group, version)
    if not resources:
        return None
    rows = [row for resource in resources for row in (_row(resource), *_sub_rows(resource))]
    listing: Document = {"kind": "APIResourceList"}
    if group:
        listing["apiVersion"] = "v1"
    return listing | {
        "groupVersion": resources[0].api_version,
        "resources": sorted(rows, key=lambda row: str(row["name"])),
    }


def aggregated_discovery(*, named: bool) -> Document:
    """Return the aggregated discovery of `/api` (not `named`) or `/apis`."""
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [_aggregated_group(name) for name in groups() if bool(name) is named],
    }


def groups() -> list[str]:
    """Return the API groups, the core group first."""
    return sorted({resource.group for resource in SERVED_RESOURCES})


def group_versions(group: str) -> list[str]:
    """Return the versions of a group, the preferred one first."""
    return list(dict.fromkeys(r.version for r in SERVED_RESOURCES if r.group == group))


def verbs(resource: ResourceInfo) -> list[str]:
    if resource.computed:
        return ["get", "list"]
    # As upstream: deleting a namespace deletes all of its content, so never many at once.
    many = () if resource.plural == "namespaces" else ("deletecollection",)
    return ["create", "delete", *many, "get", "list", "patch", "update", "watch"]


def subresource_verbs(subresource: str) -> tuple[str, ...]:
    return _SUBRESOURCES[subresource][1]


def _resources(group: str, version: str) -> list[ResourceInfo]:
    return [r for r in SERVED_RESOURCES if (r.group, r.version) == (group, version)]


def _group(name: str) -> Document:
    versions = [{"groupVersion": f"{name}/{v}", "version": v} for v in group_versions(name)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _row(resource: ResourceInfo) -> Document:
    row: Document = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": verbs(resource),
    }
    return row | _names(resource)


def _sub_rows(resource: ResourceInfo) -> list[Document]:
    return [
        {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": _subresource_kind(resource, name),
            "verbs": list(subresource_verbs(name)),
        }
        | _foreign_group(name)
        for name in resource.subresources
    ]


def _names(resource: ResourceInfo) -> Document:
    names = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
    return {key: value for key, value in names.items() if value}


def _foreign_group(subresource: str) -> Document:
    if subresource not in _FOREIGN_KINDS:
        return {}
    group, version = _FOREIGN_KINDS[subresource]
    return {"group": group, "version": version}


def _subresource_kind(resource: ResourceInfo, name: str) -> str:
    return _SUBRESOURCES[name][0] or resource.kind


def _aggregated_group(name: str) -> Document:
    return {
        "metadata": {"name": name} if name else {},
        "versions": [
            {
                "version": version,
                "resources": [_aggregated_row(r) for r in _resources(name, version)],
                "freshness": "Current",
            }
            for version in group_versions(name)
        ],
    }


def _aggregated_row(resource: ResourceInfo) -> Document:
    row: Document = {
        "resource": resource.plural,
        "responseKind": _kind(resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": verbs(resource),
    }
    subresources = [
        {
            "subresource": name,
            "responseKind": _kind(_subresource_kind(resource, name)) | _foreign_group(name),
            "verbs": list(subresource_verbs(name)),
        }
        for name in sorted(resource.subresources)
    ]
    return row | _names(resource) | ({"subresources": subresources} if subresources else {})


def _kind(kind: str) -> Document:
    # Upstream leaves group and version empty if they are those of the list.
    return {"group": "", "version": "", "kind": kind}
