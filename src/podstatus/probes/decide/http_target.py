"""URL and headers of an HTTP check or hook.

Upstream: NewRequestForHTTPGetAction, pkg/probe/http/request.go; ResolveContainerPort,
pkg/probe/util.go v1.36.4.
"""

import re

import msgspec

from podstatus.kube.objects.containers import Container, HTTPGetAction

_VERSION = "1.36"
USER_AGENT = f"kube-probe/{_VERSION}"
"""User-Agent header of probes."""
_PORT_LIMIT = 65536
_UNSAFE = re.compile(r"[^!#$%&'()*+,./:;=?@\[\]~\w-]", re.ASCII)


class BadTargetError(Exception):
    """The spec yields no valid address, port or scheme."""


class HttpTarget(msgspec.Struct, frozen=True, kw_only=True):
    """URL and headers of a request."""

    url: str
    """Encoded as it goes over the wire."""
    headers: tuple[tuple[str, str], ...]
    """In spec order; names may repeat."""


def http_target(
    action: HTTPGetAction, container: Container, *, pod_ip: str, purpose: str = "probe"
) -> HttpTarget:
    """The request of an httpGet action. Raises BadTargetError.

    `purpose` becomes part of the User-Agent header: `probe` or `lifecycle`.
    """
    host = action.host or pod_ip
    if not host:
        raise BadTargetError("the pod has no IP address yet")
    port = resolve_container_port(action.port, container)
    scheme = action.scheme.lower() or "http"
    if scheme not in ("http", "https"):
        raise BadTargetError(f"unsupported scheme {scheme!r}; use HTTP or HTTPS")
    address = f"[{host}]" if ":" in host else host
    return HttpTarget(
        url=f"{scheme}://{address}:{port}{_path(action.path)}", headers=_headers(action, purpose)
    )


def resolve_container_port(port: int | str, container: Container) -> int:
    """The port number of a port given by number or name.

    Raises BadTargetError.
    """
    number = _named_port(port, container) if isinstance(port, str) else port
    if not 0 < number < _PORT_LIMIT:
        raise BadTargetError(f"invalid port number: {number}")
    return number


def _named_port(name: str, container: Container) -> int:
    for port in container.ports or ():
        if port.name == name:
            return port.container_port
    try:
        return int(name)
    except ValueError:
        raise BadTargetError(
            f"port {name} not found; name one of the container's ports, or give a number"
        ) from None


def _path(path: str) -> str:
    """Path and query with unsafe characters percent-encoded, without a fragment."""
    path = path.partition("#")[0]
    path = path if path.startswith(("/", "?")) or not path else f"/{path}"
    return _UNSAFE.sub(lambda match: "".join(f"%{b:02X}" for b in match[0].encode()), path) or "/"


def _headers(action: HTTPGetAction, purpose: str) -> tuple[tuple[str, str], ...]:
    """Headers of the spec plus default User-Agent and Accept; an empty Accept removes it."""
    headers = [(header.name, header.value) for header in action.http_headers or ()]
    names = {name.lower() for name, _ in headers}
    if "user-agent" not in names:
        headers.append(("User-Agent", f"kube-{purpose}/{_VERSION}"))
    if "accept" not in names:
        headers.append(("Accept", "*/*"))
    return tuple(item for item in headers if (item[0].lower(), item[1]) != ("accept", ""))
