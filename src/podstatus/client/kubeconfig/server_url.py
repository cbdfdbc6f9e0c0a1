"""Where a server or a proxy is: addresses as they are checked, compared and shown."""

import ipaddress
from typing import Final
from urllib.parse import SplitResult, urlsplit

PORTS: Final = {"http": 80, "https": 443}


def split_url(text: str) -> SplitResult | None:
    """The parts of an http or https address with a host; None if it is no such thing."""
    try:
        parts = urlsplit(text.strip())
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        return None
    has_host = bool(parts.hostname) and not any(map(_is_forbidden_char, parts.netloc + parts.path))
    return parts if parts.scheme in PORTS and has_host and port_is_fine else None


def _is_forbidden_char(char: str) -> bool:
    return char.isspace() or not char.isprintable() or char in '\\"<>'


def validate_server_url(text: str) -> str:
    """What is wrong with the address of a server, or nothing; never shows what may be secret."""
    parts = split_url(text)
    if parts is None:
        return f"{redact_url(text)} is no address; it has to look like https://host:6443"
    if parts.username is not None or parts.password is not None:
        return "the address has a user in it; name the user under `users` instead"
    if parts.query or parts.fragment:
        return f"{redact_url(text)} has a query; leave out what follows the path"
    return ""


def redact_url(text: str) -> str:
    """An address for messages, quoted: no user, no password, not too long."""
    before, at, after = text.partition("://")
    scheme, rest = (before + at, after) if at else ("", text)
    return repr(scheme[:20] + rest.rpartition("@")[2].partition("?")[0][:200])


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its address or by the name localhost."""
    if host.lower() == "localhost":
        return True
    address = ip_address(host)
    return address is not None and address.is_loopback


def ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that a host is given by; None if it is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def host_and_port(host: str, port: str) -> str:
    """Both together, as they stand in an address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
