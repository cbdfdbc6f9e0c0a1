"""Build, validate, compare and redact the URLs of servers and proxies."""

import ipaddress
from typing import Final
from urllib.parse import SplitResult, urlsplit

PORTS: Final = {"http": 80, "https": 443}
_LOOPBACK_BY_WILDCARD: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared only


def split_url(text: str) -> SplitResult | None:
    """Return the parts of an http or https URL with a host; None if it is invalid."""
    try:
        parts = urlsplit(text.strip())
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError:
        return None
    has_host = bool(parts.hostname) and not any(map(_is_forbidden_char, parts.netloc + parts.path))
    return parts if parts.scheme in PORTS and has_host and port_is_valid else None


def _is_forbidden_char(char: str) -> bool:
    return char.isspace() or not char.isprintable() or char in '\\"<>'


def validate_server_url(text: str) -> str:
    """Return the error in a server URL, or ""; the error never contains secrets."""
    parts = split_url(text)
    if parts is None:
        return f"{redact_url(text)} is not a valid URL; use the form https://host:6443"
    if parts.username is not None or parts.password is not None:
        return "the URL contains a user; set the user under `users` instead"
    if parts.query or parts.fragment:
        return f"{redact_url(text)} has a query; remove everything after the path"
    return ""


def redact_url(text: str) -> str:
    """Return a URL for messages: quoted, of limited length, without user and password."""
    before, at, after = text.partition("://")
    scheme, rest = (before + at, after) if at else ("", text)
    return repr(scheme[:20] + rest.rpartition("@")[2].partition("?")[0][:200])


def is_loopback(host: str) -> bool:
    """Whether a host is a loopback address or `localhost`."""
    if host.lower() == "localhost":
        return True
    address = ip_address(host)
    return address is not None and address.is_loopback


def ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an IP address; None if the host is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def host_and_port(host: str, port: str) -> str:
    """Join host and port as in a URL, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reachable_host(host: str) -> str:
    """Return the address by which local clients reach a server that listens on `host`."""
    return _LOOPBACK_BY_WILDCARD.get(host, host)


def local_url(host: str, port: int) -> str:
    """Return the URL by which local clients reach an HTTPS server that listens on `host`."""
    return f"https://{host_and_port(reachable_host(host), str(port))}"
