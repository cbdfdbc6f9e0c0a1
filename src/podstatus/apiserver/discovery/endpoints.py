"""The endpoints that serve no objects, by path: discovery, OpenAPI, version, health.

Any other path is left to the resource handlers.
"""

from typing import Any

import msgspec

from podstatus.apiserver.discovery import discovery, openapi
from podstatus.apiserver.http.messages import JSON, Response

UNAUTHENTICATED_PATHS = frozenset(["/healthz", "/livez", "/readyz", "/version"])
"""Paths that need no token. Upstream: system:public-info-viewer."""

_HEALTH = ("/healthz", "/livez", "/readyz")
_GENERAL_TYPES = frozenset(["*/*", "application/*", JSON])


def find_endpoint(path: str, accept: str = JSON) -> Response | None:
    """Return the response to a GET; None if the path is not one of these endpoints."""
    path = path.rstrip("/") or "/"
    segments = path.split("/")[1:]
    if path in _HEALTH:
        return Response(content_type="text/plain", body=b"ok")
    if segments[0] == "openapi":
        return _openapi(path, accept)
    if path in ("/api", "/apis") and _wants_aggregated(accept):
        body = msgspec.json.encode(discovery.aggregated_discovery(named=path == "/apis"))
        return Response(content_type=discovery.AGGREGATED_TYPE, body=body)
    document = _document(segments)
    return None if document is None else Response(body=msgspec.json.encode(document))


def _document(segments: list[str]) -> dict[str, Any] | None:
    match segments:
        case [""]:
            return {"paths": _root_paths()}
        case ["version"]:
            return discovery.version_info()
        case ["api"]:
            return discovery.api_versions()
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


def _openapi(path: str, accept: str) -> Response | None:
    if path == "/openapi/v3":
        return Response(body=msgspec.json.encode(openapi.openapi_v3_index()))
    if path == "/openapi/v2":
        return _openapi_v2(accept)
    body = openapi.openapi_v3(path.removeprefix("/openapi/v3"))
    return None if body is None else Response(body=body)


def _openapi_v2(accept: str) -> Response:
    # Some clients accept only protobuf; after a 406 they continue without the document.
    if not any(media in _GENERAL_TYPES for media, _ in _media_types(accept)):
        message = b"only the following media types are accepted: application/json"
        return Response(code=406, content_type="text/plain", body=message)
    return Response(body=openapi.openapi_v2())


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
