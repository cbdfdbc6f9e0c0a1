"""The endpoints that serve no objects, by path: discovery, OpenAPI, version, health.

Any other path is left to the resource handlers.
"""

from typing import Any

import msgspec

from podstatus.apiserver.discovery import discovery, openapi

UNAUTHENTICATED_PATHS = frozenset(["/healthz", "/livez", "/readyz", "/version"])
"""Paths that need no token. Upstream: system:public-info-viewer."""

_JSON = "application/json"
_HEALTH = ("/healthz", "/livez", "/readyz")
_GENERAL_TYPES = frozenset(["*/*", "application/*", _JSON])


class EndpointResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The response of an endpoint."""

    code: int = 200
    content_type: str = _JSON
    body: bytes


def find_endpoint(path: str, accept: str = _JSON, *, address: str = "") -> EndpointResponse | None:
    """Return the response to a GET; None if the path is not one of these endpoints.

    `accept` is the Accept header, `address` the address of this server.
    """
    path = path.rstrip("/") or "/"
    segments = path.split("/")[1:]
    if path in _HEALTH:
        return EndpointResponse(content_type="text/plain", body=b"ok")
    if segments[0] == "openapi":
        return _openapi(path, accept)
    if path in ("/api", "/apis") and _wants_aggregated(accept):
        body = msgspec.json.encode(discovery.aggregated_discovery(named=path == "/apis"))
        return EndpointResponse(content_type=discovery.AGGREGATED_TYPE, body=body)
    document = _document(segments, address)
    return None if document is None else EndpointResponse(body=msgspec.json.encode(document))


def _document(segments: list[str], address: str) -> dict[str, Any] | None:
    match segments:
        case [""]:
            return {"paths": _root_paths()}
        case ["version"]:
            return discovery.version_info()
        case ["api"]:
            return discovery.api_versions(address)
        case ["api", version]:
            return discovery.api_resource_list("", version)
        case ["apis"]:
            return discovery.api_group_list()
        case ["apis", group]:
            return discovery.api_group(group)
        case ["apis", group, version] if group:
            return discovery.api_resource_list(group, version)
    return None


def _root_paths() -> list[str]:
    named = [group for group in discovery.groups() if group]
    below = [f"/apis/{group}" for group in named]
    versions = [f"/apis/{group}/{v}" for group in named for v in discovery.group_versions(group)]
    fixed = ["/api", "/api/v1", "/apis", "/openapi/v2", "/openapi/v3", "/version", *_HEALTH]
    return sorted(fixed + below + versions)


def _openapi(path: str, accept: str) -> EndpointResponse | None:
    if path == "/openapi/v3":
        return EndpointResponse(body=msgspec.json.encode(openapi.openapi_v3_index()))
    if path == "/openapi/v2":
        return _openapi_v2(accept)
    body = openapi.openapi_v3(path.removeprefix("/openapi/v3"))
    return None if body is None else EndpointResponse(body=body)


def _openapi_v2(accept: str) -> EndpointResponse:
    # Some clients accept only protobuf; after a 406 they continue without the document.
    if not any(media in _GENERAL_TYPES for media, _ in _media_types(accept)):
        message = b"only the following media types are accepted: application/json"
        return EndpointResponse(code=406, content_type="text/plain", body=message)
    return EndpointResponse(body=openapi.openapi_v2())


def _wants_aggregated(accept: str) -> bool:
    """Return whether the first supported type is aggregated discovery."""
    for media, parameters in _media_types(accept):
        if media in _GENERAL_TYPES:
            kind = parameters.get("as")
            if kind is None:
                return False
            requested = (parameters.get("g"), parameters.get("v"), kind)
            if requested == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"):
                return True
    return False


def _media_types(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Return the types of an Accept header with their parameters; weights are ignored."""
    result = []
    for clause in (accept or "*/*").split(","):
        media, *pairs = (part.strip() for part in clause.split(";"))
        result.append((media, dict(pair.split("=", 1) for pair in pairs if "=" in pair)))
    return result
