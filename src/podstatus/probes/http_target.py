"""What an HTTP check of a container asks for: the URL and the headers.

Upstream: NewRequestForHTTPGetAction, pkg/probe/http/request.go; ResolveContainerPort,
pkg/probe/util.go v1.36.4.
"""

import re

import msgspec

from podstatus.kube.objects.containers import Container, HTTPGetAction

_VERSION = "1.36"
USER_AGENT = f"kube-probe/{_VERSION}"
"""Whom servers see that a probe asks."""
_PORT_LIMIT = 65536
_UNSAFE = re.compile(r"[^!#$%&'()*+,./:;=?@\[\]~\w-]", re.ASCII)


class BadTargetError(Exception):
    """There is nothing that could be asked; the message says why."""


class HttpTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Where to ask, and with which headers."""

    url: str
    """Encoded as it goes over the wire."""
    headers: tuple[tuple[str, str], ...]
    """In the order of the spec; one name may come again."""


def http_target(
    action: HTTPGetAction, container: Container, *, pod_ip: str, purpose: str = "probe"
) -> HttpTarget:
    """What to ask for. `purpose` is named to the server: `probe` or `lifecycle`.

    Raises BadTargetError.
    """
    host = action.host or pod_ip
    if not host:
        raise BadTargetError("the pod has no address yet")
    port = resolve_container_port(action.port, container)
    scheme = action.scheme.lower() or "http"
    if scheme not in ("http", "https"):
        raise BadTargetError(f"unsupported scheme {scheme!r}; use HTTP or HTTPS")
    place = f"[{host}]" if ":" in host else host
    return HttpTarget(
        url=f"{scheme}://{place}:{port}{_path(action.path)}", headers=_headers(action, purpose)
    )


def resolve_container_port(port: int | str, container: Container) -> int:
    """The number of a port that the spec gives as a number or by its name.

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
    """The path and its query, with what a request cannot carry encoded; never a fragment."""
    path = path.partition("#")[0]
    path = path if path.startswith(("/", "?")) or not path else f"/{path}"
    return _UNSAFE.sub(lambda found: "".join(f"%{b:02X}" for b in found[0].encode()), path) or "/"


def _headers(action: HTTPGetAction, purpose: str) -> tuple[tuple[str, str], ...]:
    """Those of the spec, and ours where it has none; an empty Accept means none at all."""
    given = [(header.name, header.value) for header in action.http_headers or ()]
    names = {name.lower() for name, _ in given}
    if "user-agent" not in names:
        given.append(("User-Agent", f"kube-{purpose}/{_VERSION}"))
    if "accept" not in names:
        given.append(("Accept", "*/*"))
    return tuple(item for item in given if (item[0].lower(), item[1]) != ("accept", ""))
