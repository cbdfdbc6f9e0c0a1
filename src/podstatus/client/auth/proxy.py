"""Which proxy is on the way to a server: the one that is named, or the environment's.

Upstream: httpproxy.Config of golang.org/x/net, as client-go uses it (v0.36.4).
"""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from podstatus.client.errors import KubeconfigError
from podstatus.client.kubeconfig.server_url import (
    PORTS,
    ip_address,
    is_loopback,
    redact_url,
    split_url,
)


def select_proxy(server: str, named: str, environment: Mapping[str, str]) -> str | None:
    """The proxy for a server. What is named wins, even on the way to this machine.

    Raises KubeconfigError for a proxy that cannot be used.
    """
    if named:
        return _validate_proxy(named, "proxy-url")
    where = urlsplit(server)
    variable, value = _variable(environment, f"{where.scheme}_proxy")
    if not value or where.hostname is None or is_loopback(where.hostname):
        return None
    port = where.port or PORTS[where.scheme]
    _, exceptions = _variable(environment, "no_proxy")
    if any(_matches_rule(rule, where.hostname, port) for rule in exceptions.split(",")):
        return None
    return _validate_proxy(value if "://" in value else f"http://{value}", variable)


def _variable(environment: Mapping[str, str], name: str) -> tuple[str, str]:
    """A variable in capitals or not, as it is called, and what it says."""
    for spelled in (name.upper(), name):
        if environment.get(spelled):
            return spelled, environment[spelled].strip()
    return name.upper(), ""


def _validate_proxy(proxy: str, source: str) -> str:
    if proxy.partition(":")[0].lower() in ("socks5", "socks5h", "socks4", "socks"):
        raise KubeconfigError(
            f"{source} is {redact_url(proxy)}, but SOCKS proxies are not supported; name an "
            "http or https proxy"
        )
    if split_url(proxy) is None:
        raise KubeconfigError(
            f"{source} is {redact_url(proxy)}, which is no address; it has to look like "
            "http://host:3128"
        )
    return proxy


def _matches_rule(rule: str, host: str, port: int) -> bool:
    """Whether one entry of NO_PROXY is about a server."""
    rule = rule.strip().lower()
    if rule == "*":
        return True
    address = ip_address(host)
    network = _network(rule)
    if network is not None:
        return address is not None and address in network
    name, of_port = _host_and_port(rule)
    if of_port not in ("", str(port)):
        return False
    excepted = ip_address(name)
    if excepted is not None or address is not None:
        return excepted == address
    return _matches_domain(name.removeprefix("*"), host.lower())


def _matches_domain(name: str, host: str) -> bool:
    """`example.com` is about itself and all below, `.example.com` about all below."""
    if name.startswith("."):
        return len(name) > 1 and host.endswith(name)
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _network(rule: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    if "/" not in rule:
        return None
    try:
        return ipaddress.ip_network(rule, strict=False)
    except ValueError:
        return None


def _host_and_port(rule: str) -> tuple[str, str]:
    if rule.startswith("["):
        host, _, port = rule[1:].partition("]")
        return host, port.removeprefix(":")
    if rule.count(":") == 1:
        host, _, port = rule.partition(":")
        return host, port
    return rule, ""
