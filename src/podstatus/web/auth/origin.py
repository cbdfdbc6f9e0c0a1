"""Reject cross-origin requests and foreign Host headers; recognize loopback addresses.

A browser sends requests of other sites' pages, perhaps with a client certificate of its user, and
a foreign host name can be made to resolve to this machine (DNS rebinding). So cross-origin requests
are rejected, and so are requests whose Host header does not name this node. Requests that a proxy
forwarded may be cross-origin: kube-apiserver passes the Origin of its client on. A page cannot
pretend that: browsers send X-Forwarded-For to another origin only after a preflight request, which
is not answered.

Upstream: CrossOriginProtection, net/http of Go 1.26, for the order of `Sec-Fetch-Site` and
`Origin`; here for all methods, since reading is as sensitive as writing.
"""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

from podstatus.web.errors import HttpError, bad_request

_LOCAL = "localhost"


def check_origin(headers: Mapping[str, str], names: Iterable[str]) -> None:
    """Raise HttpError for a cross-origin request, or for a Host that does not name this node.

    `names` are the names of this node, with `*.` for all below one; IP addresses and `localhost`
    always match. A request without a Host header is accepted: no browser sends one.
    """
    host = headers.get("Host")
    if host is not None and not is_own_host(host, names):
        raise HttpError(
            HTTPStatus.MISDIRECTED_REQUEST,
            "the Host header does not name this node; use an IP address, localhost, or a name of "
            "its certificate",
        )
    if "X-Forwarded-For" in headers:
        return
    site = headers.get("Sec-Fetch-Site")
    if site is None:
        is_cross_origin = _is_cross_origin(headers.get("Origin"), host)
    else:
        is_cross_origin = site not in ("none", "same-origin")
    if is_cross_origin:
        raise HttpError(HTTPStatus.FORBIDDEN, "cross-origin requests are not allowed")


def is_own_host(host: str, names: Iterable[str]) -> bool:
    """Whether a Host header names this node. Raises HttpError for an invalid one."""
    name = _host_name(host)
    if name == _LOCAL or is_address(name):
        return True
    _, _, parent = name.partition(".")
    return any(it.lower() in (name, f"*.{parent}" if parent else name) for it in names)


def is_loopback(address: object) -> bool:
    """Whether a socket address, as `getpeername` returns it, is on loopback."""
    if not isinstance(address, tuple) or not address:
        return False
    host = str(address[0]).partition("%")[0]
    if not is_address(host):
        return False
    parsed = ip_address(host)
    mapped = getattr(parsed, "ipv4_mapped", None)
    return bool((mapped or parsed).is_loopback)


def is_address(text: str) -> bool:
    """Whether the text is an IP address, not a host name."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _host_name(host: str) -> str:
    """The host of a Host header in lower case, without port, brackets and final dot."""
    try:
        url = urlsplit(f"//{host}")
        _ = url.port
    except ValueError as error:
        raise bad_request("the Host header is not a valid host") from error
    name = url.hostname or ""
    if not name or url.netloc != host or "@" in host:
        raise bad_request("the Host header is not a valid host")
    return name.removesuffix(".")


def _is_cross_origin(origin: str | None, host: str | None) -> bool:
    """Whether the Origin differs from the Host; `null`, an opaque origin, always does."""
    if origin is None:
        return False
    _, _, where = origin.partition("://")
    return not where or host is None or where.lower() != host.lower()
