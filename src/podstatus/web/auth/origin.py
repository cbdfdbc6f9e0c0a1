"""Which requests may come from a page of somebody else's, and which from this machine.

A browser sends what other people's pages ask it to, perhaps with a certificate of its user; and
a name of theirs can be made to mean this machine (DNS rebinding). So what a page of another site
asks is refused, and so is what was asked of a name that is not ours.

Upstream: CrossOriginProtection, net/http of Go 1.26, for the order of `Sec-Fetch-Site` and
`Origin`; here for all methods, since what is read is worth as much as what is done.
"""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

from podstatus.web.errors import HttpError, bad_request

_LOCAL = "localhost"


def check_origin(headers: Mapping[str, str], names: Iterable[str]) -> None:
    """Raise Refusal for what was asked by others' pages, or of a host that is not ours.

    `names` are those that this node goes by, `*.` in front for all below one; addresses and
    `localhost` always are ours. Who sends no Host is no browser.
    """
    host = headers.get("Host")
    if host is not None and not is_own_host(host, names):
        raise HttpError(
            HTTPStatus.MISDIRECTED_REQUEST,
            "this node does not go by that name; ask it by an address, by localhost, or by a name "
            "that its certificate has",
        )
    site = headers.get("Sec-Fetch-Site")
    if site is None:
        is_others = _is_cross_origin(headers.get("Origin"), host)
    else:
        is_others = site not in ("none", "same-origin")
    if is_others:
        raise HttpError(HTTPStatus.FORBIDDEN, "requests of other sites' pages are refused")


def is_own_host(host: str, names: Iterable[str]) -> bool:
    """Whether a Host header names this node. Raises Refusal for one that makes no sense."""
    name = _host_name(host)
    if name == _LOCAL or is_address(name):
        return True
    _, _, parent = name.partition(".")
    return any(it.lower() in (name, f"*.{parent}" if parent else name) for it in names)


def is_loopback(address: object) -> bool:
    """Whether an end of a connection, as sockets tell it, is on this machine alone."""
    if not isinstance(address, tuple) or not address:
        return False
    host = str(address[0]).partition("%")[0]
    if not is_address(host):
        return False
    found = ip_address(host)
    mapped = getattr(found, "ipv4_mapped", None)
    return bool((mapped or found).is_loopback)


def is_address(text: str) -> bool:
    """Whether it is an address and no name."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _host_name(host: str) -> str:
    """The name in a Host header, without port, brackets and a last dot, in small letters."""
    try:
        found = urlsplit(f"//{host}")
        _ = found.port
    except ValueError as error:
        raise bad_request("the Host header is no host") from error
    name = found.hostname or ""
    if not name or found.netloc != host or "@" in host:
        raise bad_request("the Host header is no host")
    return name.removesuffix(".")


def _is_cross_origin(origin: str | None, host: str | None) -> bool:
    """Whether the page is of another origin; `null`, of a page that has none, is another."""
    if origin is None:
        return False
    _, _, where = origin.partition("://")
    return not where or host is None or where.lower() != host.lower()
